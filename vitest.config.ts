import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Most of the time tests wait, for locks and leases to lapse: two at a time also where there are two processors.
    maxWorkers: Math.max(2, Math.floor(availableParallelism() / 2)),
    projects: [
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts'], testTimeout: 10_000 } },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          globalSetup: ['test/support/globalSetup.ts'],
          testTimeout: 60_000,
          hookTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'container',
          include: ['test/container/**/*.test.ts'],
          globalSetup: ['test/support/globalSetup.ts', 'test/support/engineSetup.ts'],
          testTimeout: 120_000,
          hookTimeout: 60_000,
          // Containers press a machine: after all others.
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});

// `control-plane`: the local control plane as a process of its own, for tests and demos.

import { ControlPlane } from '../../dev/controlPlane/controlPlane.js';
import type { CommandDefinition } from '../program.js';
import { watchSignals } from '../shutdown.js';

export const controlPlane: CommandDefinition<'port' | 'pool' | 'pollHold' | 'lease'> = {
  words: 'control-plane',
  summary: 'run a local control plane for tests and demos',
  description:
    'Serves the pool, run-control and inference protocols on 127.0.0.1 with a scripted model and an admin API, and ' +
    'prints one JSON line with its address and its tokens. State lives in memory.',
  settings: ['port', 'pool', 'pollHold', 'lease'],
  async run({ port, pool, pollHold, lease }, _input, terminal) {
    const shutdown = watchSignals();
    const server = new ControlPlane({ port, pool, pollHoldMs: pollHold, leaseMs: lease });
    try {
      const { url, registrationToken, adminToken } = await server.start();
      const line = { url, registration_token: registrationToken, admin_token: adminToken };
      terminal.stdout.write(`${JSON.stringify(line)}\n`);
      return await shutdown.asked;
    } finally {
      await server.stop();
      shutdown.dispose();
    }
  },
};

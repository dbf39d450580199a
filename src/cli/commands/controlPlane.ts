// `control-plane`: the local control plane as a process of its own, for tests and demos.

import { ControlPlane } from '../../dev/controlPlane/controlPlane.js';
import type { CommandRun } from '../program.js';
import type { SettingOf } from '../settings.js';
import { watchSignals } from '../shutdown.js';

export const runControlPlane: CommandRun<SettingOf<'controlPlane'>> = async (values, _input, terminal) => {
  const { port, pool, pollHold, lease } = values;
  const shutdown = watchSignals();
  const server = new ControlPlane({ port, pool, pollHoldMs: pollHold, leaseMs: lease });
  try {
    const { url, registrationToken, adminToken } = await server.start();
    const line = { url, registration_token: registrationToken, admin_token: adminToken };
    shutdown.serving();
    terminal.stdout.write(`${JSON.stringify(line)}\n`);
    return await shutdown.asked;
  } finally {
    await server.stop();
    shutdown.dispose();
  }
};

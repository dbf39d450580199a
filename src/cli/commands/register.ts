// `register`: enrols this machine once, so that every later start finds its identity.

import { OperatorError } from '../../contract/operatorError.js';
import { PlatformHttp } from '../../platform/http.js';
import { PoolClient } from '../../platform/poolClient.js';
import { saveIdentity } from '../../poller/identity.js';
import { EXIT, type CommandRun } from '../program.js';
import type { SettingOf } from '../settings.js';
import { packageVersion } from '../version.js';

const OS = { linux: 'linux', darwin: 'macos', win32: 'windows' } as const;
const ARCH = { x64: 'x64', arm64: 'arm64' } as const;

export const runRegister: CommandRun<SettingOf<'register'>> = async (values, _input, terminal) => {
  const { url, token, name, labels, identityDir } = values;
  if (url === undefined || token === undefined) return EXIT.usage;
  const version = packageVersion();
  const http = new PlatformHttp({ userAgent: `boardwalk-fleet/${version}` });
  try {
    const result = await PoolClient.register(http, {
      controlPlaneUrl: url,
      registrationToken: token,
      name,
      labels,
      os: lookUp(OS, process.platform),
      arch: lookUp(ARCH, process.arch),
      runnerVersion: version,
    });
    if (result.outcome === 'failed')
      throw new OperatorError(
        'REGISTER_FAILED',
        `This machine was not registered: ${result.error.message}.`,
        {
          hint: 'A registration token is good for one machine and one hour. Ask the control plane for a new one.',
          cause: result.error,
        },
      );
    const { runner_id: runnerId, runner_token: runnerToken, pool } = result.registration;
    const file = await saveIdentity(identityDir, {
      runnerId,
      runnerToken,
      pool,
      name,
      controlPlaneUrl: url,
      createdAtMs: Date.now(),
    });
    terminal.stdout.write(`registered as ${runnerId} in pool ${pool}; identity in ${file}\n`);
    return EXIT.done;
  } finally {
    await http.close();
  }
};

function lookUp<T>(names: Readonly<Record<string, T>>, key: string): T | undefined {
  return names[key];
}

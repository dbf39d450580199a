// `register`: enrols this machine once, so that every later start finds its identity. The token can be used once:
// whatever can be found wrong is found before it is sent.

import { OperatorError } from '../../contract/operatorError.js';
import { PlatformHttp } from '../../platform/http.js';
import { PoolClient } from '../../platform/poolClient.js';
import type { PlatformError } from '../../platform/platformError.js';
import { identitiesAt, saveIdentity } from '../../poller/identity.js';
import { usableDirectory } from '../directories.js';
import { EXIT, type CommandRun } from '../program.js';
import type { SettingOf } from '../settings.js';
import { packageVersion } from '../version.js';

const OS = { linux: 'linux', darwin: 'macos', win32: 'windows' } as const;
const ARCH = { x64: 'x64', arm64: 'arm64' } as const;

export const runRegister: CommandRun<SettingOf<'register'>> = async (values, _input, terminal) => {
  const { url, token, name, labels, identityDir, force } = values;
  if (url === undefined || token === undefined) return EXIT.usage;
  await usableDirectory(
    identityDir,
    'identity directory',
    'Name a directory that you may write to with --identity-dir.',
  );
  if (!force) await refuseSecond(identityDir, url);
  const version = packageVersion();
  const http = new PlatformHttp({
    userAgent: `boardwalk-fleet/${version}`,
    environment: terminal.environment,
  });
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
        `This machine was not registered: ${result.error.message.replace(/\.$/, '')}.`,
        { hint: adviceFor(result.error), cause: result.error },
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

/** Which pool a token is for only the control plane knows, so any identity there may be the one that is replaced. */
async function refuseSecond(dir: string, url: string): Promise<void> {
  const known = await identitiesAt({ dir, controlPlaneUrl: url });
  if (known.length === 0) return;
  const names = known.map(({ path, runnerId }) => `${runnerId ?? 'unreadable'} (${path})`);
  throw new OperatorError(
    'IDENTITY_EXISTS',
    `This machine is registered with ${url} already: ${names.join(', ')}.`,
    {
      hint: [
        'The token was not used. With --force it is: a new identity for the same pool replaces the old file.',
        'To keep both, register with another --identity-dir and start with it.',
      ].join('\n'),
    },
  );
}

export function adviceFor({ code, status = 0, hint }: PlatformError): string {
  if (hint !== undefined) return hint;
  if (code === 'PLATFORM_TIMEOUT')
    return 'The token may have been used: look for this machine among the runners before you try again.';
  if (code === 'PLATFORM_INVALID' || status === 404)
    return 'Is --url right? What answers there does not answer as a control plane does.';
  if (status === 429 || status >= 500)
    return 'The control plane has a trouble of its own: try again in a while, with the same token first.';
  return 'A registration token is good for one machine and one hour. Ask the control plane for a new one.';
}

function lookUp<T>(names: Readonly<Record<string, T>>, key: string): T | undefined {
  return names[key];
}

// A run image without a registry, for tests and trials: Node.js 24 from npm, the libraries it needs, and busybox as its
// shell. `npm run image:local` makes it in the engine that answers and prints its name.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { create } from 'tar';
import { engineClient, needEngine } from './engine.mjs';
import { aptInstall, canApt } from './needs.mjs';
import { node24 } from './node24.mjs';

export const LOCAL_RUN_IMAGE = 'boardwalk-fleet-run:local';

const BUSYBOX = '/bin/busybox';
const SHELL_COMMANDS = [
  ...[
    'sh',
    'cat',
    'cp',
    'date',
    'echo',
    'env',
    'find',
    'grep',
    'head',
    'id',
    'kill',
    'ls',
    'mkdir',
    'mv',
    'nproc',
  ],
  ...[
    'ps',
    'rm',
    'sed',
    'seq',
    'sleep',
    'sort',
    'stat',
    'tail',
    'tar',
    'test',
    'touch',
    'tr',
    'true',
    'wc',
    'which',
  ],
];

/**
 * Makes the image unless the engine has it.
 *
 * @param {string} address of the engine
 * @returns {Promise<string>} its name
 */
export async function needRunImage(address) {
  const docker = engineClient(address);
  const there = await docker
    .getImage(LOCAL_RUN_IMAGE)
    .inspect()
    .then(() => true)
    .catch(() => false);
  if (there) return LOCAL_RUN_IMAGE;
  const root = mkdtempSync(join(tmpdir(), 'bwi-'));
  try {
    fill(root);
    const archive = create({ cwd: root }, ['.']);
    const [repo, tag] = LOCAL_RUN_IMAGE.split(':');
    const changes = ['ENV PATH=/usr/local/bin:/usr/bin:/bin'];
    const answer = await docker.importImage(archive, { repo, tag, changes });
    await new Promise((resolve, reject) =>
      docker.modem.followProgress(answer, (error) => (error ? reject(error) : resolve())),
    );
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  return LOCAL_RUN_IMAGE;
}

function fill(root) {
  const put = (from, to) => {
    const target = join(root, to);
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(from, target);
  };
  const node = node24();
  put(node, 'usr/local/bin/node');
  for (const library of librariesOf(node)) put(library, library);
  if (!existsSync(BUSYBOX) && canApt()) aptInstall(['busybox-static']);
  put(BUSYBOX, 'bin/busybox');
  for (const name of SHELL_COMMANDS) symlinkSync('busybox', join(root, 'bin', name));
  if (existsSync('/etc/ssl/certs/ca-certificates.crt'))
    put('/etc/ssl/certs/ca-certificates.crt', 'etc/ssl/certs/ca-certificates.crt');
  for (const directory of ['tmp', 'workspace', 'run', 'opt', 'proc', 'sys', 'dev', 'home/node'])
    mkdirSync(join(root, directory), { recursive: true });
  // Some engines give a tmpfs the mode of the directory that it covers.
  chmodSync(join(root, 'tmp'), 0o1777);
  mkdirSync(join(root, 'etc'), { recursive: true });
  writeFileSync(
    join(root, 'etc/passwd'),
    'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\n',
  );
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\nnode:x:1000:\n');
}

/** Absolute paths, the loader included. */
function librariesOf(program) {
  const { stdout, status } = spawnSync('ldd', [program], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`ldd ${program} failed: the run image needs its libraries.`);
  return [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path);
}

if (process.argv[1] === import.meta.filename) {
  const engine = await needEngine();
  if (engine === null) {
    process.stderr.write(
      'No container engine answers. Start Docker or Podman, or name one with DOCKER_HOST.\n',
    );
    process.exit(1);
  }
  try {
    process.stdout.write(`${await needRunImage(engine.address)}\n`);
  } finally {
    await engine.stop();
  }
}

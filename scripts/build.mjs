// Builds dist/: the fleet's modules with tsc, and what ships into a sandbox (dist/sandbox) with esbuild.
// `--sandbox-only` rebuilds just the latter.
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const dist = join(root, 'dist');
const sandbox = join(dist, 'sandbox');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const sandboxOnly = process.argv.includes('--sandbox-only');
rmSync(sandboxOnly ? sandbox : dist, { recursive: true, force: true });
if (!sandboxOnly) buildFleet();
await buildSandbox();

function buildFleet() {
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc');
  const { status } = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], {
    stdio: 'inherit',
    cwd: root,
  });
  if (status !== 0) process.exit(status ?? 1);
  cpSync(join(root, 'src/queue/lua'), join(dist, 'queue/lua'), { recursive: true });
  chmodSync(join(dist, 'cli/main.js'), 0o755);
}

async function buildSandbox() {
  // Some bundled packages are CommonJS and ask for `require` at run time.
  const requireBanner =
    "import { createRequire as __createRequire } from 'node:module';\nconst require = __createRequire(import.meta.url);";
  const common = {
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'warning',
    legalComments: 'none',
  };
  await build({
    ...common,
    entryPoints: {
      runtime: join(root, 'src/runtime/main.ts'),
      watchdog: join(root, 'src/runtime/watchdog.ts'),
    },
    outdir: sandbox,
    outExtension: { '.js': '.mjs' },
    banner: { js: requireBanner },
  });
  // The SDK's two entries share one copy of its state (splitting): a program and its loader must see the same host.
  await build({
    ...common,
    splitting: true,
    entryPoints: {
      index: join(root, 'src/runtime/sdk/index.ts'),
      runtime: join(root, 'src/runtime/sdk/runtime.ts'),
      loader: join(root, 'src/runtime/sdk/loader.ts'),
    },
    outdir: join(sandbox, 'sdk'),
    outExtension: { '.js': '.mjs' },
  });
  writeFileSync(
    join(sandbox, 'sdk/package.json'),
    `${JSON.stringify(
      {
        name: '@boardwalk-labs/workflow',
        version,
        type: 'module',
        exports: { '.': './index.mjs', './runtime': './runtime.mjs' },
      },
      null,
      2,
    )}\n`,
  );
}

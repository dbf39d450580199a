#!/usr/bin/env node
// The program's entry: all commands, one exit.

import { controlPlane } from './commands/controlPlane.js';
import { dev } from './commands/dev.js';
import { keyGenerate } from './commands/keyGenerate.js';
import { register } from './commands/register.js';
import { start } from './commands/start.js';
import { CommandLine } from './program.js';
import { packageVersion } from './version.js';

const line = new CommandLine(packageVersion(), {
  environment: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
})
  .add(start)
  .add(register)
  .add(dev)
  .add(controlPlane)
  .add(keyGenerate);

process.exitCode = await line.run(process.argv.slice(2));

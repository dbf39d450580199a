#!/usr/bin/env node
// The program's entry: all commands, one exit.

import { controlPlane, dev, keyGenerate, register, start } from './commands.js';
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

#!/usr/bin/env node
// The program's entry: all commands, one exit. A command that has ended is over, whatever it left open.

import { configPrint, controlPlane, dev, keyGenerate, register, start } from './commands.js';
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
  .add(keyGenerate)
  .add(configPrint);

// A reader that has gone, as in `dev DIR | head`, ends no run: what nobody reads is dropped, and everything is cleaned up.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

/** For output that a slow reader has not taken yet. */
const LEFT_OPEN_MS = 5_000;

process.exitCode = await line.run(process.argv.slice(2));
setTimeout(() => process.exit(), LEFT_OPEN_MS).unref();

// Prints into rows: lines, bounds, and secrets that only show when pieces are joined.

import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { SecretSet } from '../../../src/redaction/secretSet.js';
import type { EventBody } from '../../../src/runtime/eventStream.js';
import { ProgramOutput } from '../../../src/runtime/programOutput.js';

function output(...secrets: readonly string[]): {
  readonly output: ProgramOutput;
  readonly texts: () => readonly string[];
} {
  const events: EventBody[] = [];
  const set = new SecretSet();
  for (const secret of secrets) set.add(secret);
  return {
    output: new ProgramOutput({
      secrets: set,
      emit: (event) => events.push(event),
      room: () => Promise.resolve(),
    }),
    texts: () =>
      events.map((event) =>
        event.kind === 'program_output' ? `${event.stream}: ${event.text}` : event.kind,
      ),
  };
}

async function piped(target: ProgramOutput, ...chunks: readonly (string | Buffer)[]): Promise<void> {
  const pipe = new PassThrough();
  const done = target.pipe('stdout', pipe);
  for (const chunk of chunks) {
    pipe.write(chunk);
    await new Promise((resolve) => setImmediate(resolve));
  }
  pipe.end();
  await done;
}

test('raw writes become lines, also when a line or a character comes in pieces', async () => {
  const { output: target, texts } = output();
  const umlaut = Buffer.from('ü');
  await piped(target, 'one\r\ntw', 'o\n\n', umlaut.subarray(0, 1), umlaut.subarray(1), ' last');
  expect(texts()).toEqual(['stdout: one', 'stdout: two', 'stdout: ', 'stdout: ü last']);
});

test('a secret written in two pieces, or over several lines, is redacted before lines are cut (R16)', async () => {
  const { output: target, texts } = output('pass-word', 'BEGIN\nkey\nEND');
  await piped(target, 'my pass', '-word\n', 'BEGIN\n', 'key\n', 'END\nBEGIN\nother\n');
  expect(texts()).toEqual(['stdout: my [REDACTED]', 'stdout: [REDACTED]', 'stdout: BEGIN', 'stdout: other']);
});

test('a long line is cut after redaction, and never inside a surrogate pair', async () => {
  const { output: target, texts } = output('x'.repeat(100));
  await target.console('stderr', `${'a'.repeat(8_150)}${'x'.repeat(100)}`, false);
  await target.console('stdout', `${'a'.repeat(8_191)}😀b`, false);
  expect(texts()).toEqual([
    `stderr: ${'a'.repeat(8_150)}[REDACTED]`,
    `stdout: ${'a'.repeat(8_191)}… (truncated)`,
  ]);
});

test('the end of a text that was cut by its sender may be half a secret, and is not shown', async () => {
  const { output: target, texts } = output('pass-word');
  await target.console('stdout', 'it is pass', true);
  expect(texts()).toEqual(['stdout: it is … (truncated)']);
});

test('a pipe waits while there is no room, until the program is gone', async () => {
  const events: EventBody[] = [];
  const target = new ProgramOutput({
    secrets: new SecretSet(),
    emit: (event) => events.push(event),
    room: () => new Promise(() => undefined),
  });
  const pipe = new PassThrough();
  const done = target.pipe('stderr', pipe);
  pipe.write('1\n');
  await new Promise((resolve) => setImmediate(resolve));
  pipe.end('2\n');
  await new Promise((resolve) => setImmediate(resolve));
  expect(events).toHaveLength(1);
  target.hurry();
  await done;
  expect(events).toHaveLength(2);
  expect(target.lastStderrLine).toBe('2');
});

// Thrown values as errors of a finalize and of the host socket, and what parallel() makes of them.

import { expect, test, vi } from 'vitest';
import { SecretSet } from '../../../src/redaction/secretSet.js';
import { cancelled, curate, cut, RunFailure, toWireError } from '../../../src/runtime/runFailure.js';
import { parallel } from '../../../src/runtime/sdk/parallel.js';

const NO_SECRETS = new SecretSet();

test('the code is the error code when it is one, else the name, else PROGRAM_ERROR', () => {
  expect(curate({ code: 'OUT_OF_STOCK', name: 'E', message: 'm' }, NO_SECRETS).code).toBe('OUT_OF_STOCK');
  expect(curate({ code: 'out_of_stock', name: 'StockError', message: 'm' }, NO_SECRETS).code).toBe(
    'StockError',
  );
  expect(curate({ code: 7, message: 'm' }, NO_SECRETS)).toEqual({ code: 'PROGRAM_ERROR', message: 'm' });
  expect(curate({}, NO_SECRETS).message).not.toBe('');
});

test('secrets are taken out of code, message and hint', () => {
  const secrets = new SecretSet();
  secrets.add('swordfish');
  expect(curate({ name: 'swordfish', message: 'a swordfish', hint: 'swordfish!' }, secrets)).toEqual({
    code: '[REDACTED]',
    message: 'a [REDACTED]',
    hint: '[REDACTED]!',
  });
});

test('a cut leaves no half character', () => {
  expect(cut('ab😀', 3)).toBe('ab…');
  expect(cut('ab😀', 4)).toBe('ab😀');
});

test('on the socket a stop is CANCELLED with its reason, a failure keeps its hint, anything else its name', () => {
  expect(toWireError(cancelled('cancelled'))).toMatchObject({
    code: 'CANCELLED',
    data: { reason: 'cancelled' },
  });
  expect(toWireError(new RunFailure('X_Y', 'm', { hint: 'h' }))).toEqual({
    code: 'X_Y',
    message: 'm',
    data: { hint: 'h' },
  });
  expect(toWireError(new RangeError('r'))).toEqual({ code: 'RangeError', message: 'r' });
  expect(toWireError('text')).toEqual({ code: 'INTERNAL', message: 'text' });
});

test('parallel waits for all, isolates failures, and throws the first run-fatal one unchanged (R24)', async () => {
  const warned = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  const settled: number[] = [];
  const fatal = Object.assign(new Error('stop'), { code: 'CANCELLED' });
  const late = async (): Promise<number> => {
    await Promise.resolve();
    return settled.push(1);
  };
  const throws = (): never => {
    throw new Error('at once');
  };
  expect(await parallel([throws, late])).toEqual([null, 1]);
  expect(warned).toHaveBeenCalledWith('parallel: task 0 failed: at once');
  await expect(parallel([throws, () => Promise.reject(fatal), late])).rejects.toBe(fatal);
  expect(settled).toHaveLength(2);
  warned.mockRestore();
});

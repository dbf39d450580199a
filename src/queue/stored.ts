// Text from Redis becomes a value through its schema, here and nowhere else. A text that doesn't fit is a RecordError
// that names the record and the field, never the text: it may hold a credential.

import type { z } from 'zod';
import { RecordError } from './errors.js';

/** Parses JSON text that one of our own processes wrote. @throws RecordError */
export function parseStored<T>(schema: z.ZodType<T>, text: string, what: string): T {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new RecordError(`${what} is not JSON.`);
  }
  return readStored(schema, json, what);
}

/** Checks an answer of Redis, or a value that the queue's library has parsed. @throws RecordError */
export function readStored<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const issue = read.error.issues[0];
  const where =
    issue === undefined || issue.path.length === 0 ? '' : ` at ${issue.path.map(String).join('.')}`;
  throw new RecordError(`${what} can't be read${where} (${issue?.code ?? 'unknown'}).`);
}

// One request as a route sees it: its parameters, its bearer, its body. It guards the edge: a body is JSON, within the
// route's bound, and exactly what its schema says, or the answer is a 400 that names the field.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { z } from 'zod';
import { Refusal } from './answer.js';

export class Incoming {
  readonly params: readonly string[];
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #body: Buffer;

  /** @param params the path's variable segments, decoded, in order */
  constructor(req: IncomingMessage, res: ServerResponse, params: readonly string[], body: Buffer) {
    this.#req = req;
    this.#res = res;
    this.params = params;
    this.#body = body;
  }

  /** The token of `Authorization: Bearer`; `null` when there is none. */
  get bearer(): string | null {
    const header = this.#req.headers.authorization;
    return header !== undefined && /^bearer /i.test(header) ? header.slice('bearer '.length) : null;
  }

  /** The first of this name; `undefined` when there is none. */
  header(name: string): string | undefined {
    const value = this.#req.headers[name];
    return Array.isArray(value) ? value[0] : value;
  }

  /** The body as JSON; an empty one is `{}`. @throws Refusal 400 */
  json(): unknown {
    if (this.#body.length === 0) return {};
    try {
      return JSON.parse(this.#body.toString('utf8')) as unknown;
    } catch {
      throw new Refusal(400, 'BAD_REQUEST', 'The body is not JSON.');
    }
  }

  /** The body by its schema. @param what words for the message: `poll request`. @throws Refusal 400 that names the field */
  read<S extends z.ZodType>(what: string, schema: S): z.output<S> {
    return readBySchema(what, schema, this.json());
  }

  /** Calls back when the client hangs up before it was answered; returns how to stop listening. */
  onGone(listener: () => void): () => void {
    const onClose = (): void => {
      if (!this.#res.writableFinished) listener();
    };
    this.#res.once('close', onClose);
    return () => this.#res.off('close', onClose);
  }
}

/** @throws Refusal 400 that names the field and never its value, which may be a credential */
export function readBySchema<S extends z.ZodType>(what: string, schema: S, value: unknown): z.output<S> {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const issue = read.error.issues[0];
  const field =
    issue === undefined || issue.path.length === 0 ? 'the body' : issue.path.map(String).join('.');
  throw new Refusal(400, 'VALIDATION_FAILED', `${what}: ${field}: ${issue?.message ?? 'is not valid'}`);
}

/** How much of a body that is too long is read and thrown away, so that the client gets to see the answer. */
const DISCARD_BYTES = 64 * 1024 * 1024;

export type BodyRead =
  | { readonly outcome: 'read'; readonly body: Buffer }
  | { readonly outcome: 'too_large' }
  | { readonly outcome: 'broken' };

/** The whole body of at most `limit` bytes. */
export function readBody(req: IncomingMessage, limit: number): Promise<BodyRead> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= limit) chunks.push(chunk);
      else chunks.length = 0;
      if (bytes > limit + DISCARD_BYTES) req.destroy();
    });
    req.once('end', () => {
      resolve(
        bytes > limit ? { outcome: 'too_large' } : { outcome: 'read', body: Buffer.concat(chunks, bytes) },
      );
    });
    req.once('error', () => resolve({ outcome: 'broken' }));
    req.once('close', () => resolve({ outcome: 'broken' }));
  });
}

// The socket between program and host, frame by frame: JSON-RPC 2.0 with string error codes, one object a line
// (protocol/sdk.md 2-3). Tolerant: members that we don't know are ignored. Guards against a frame taken for another
// kind; what params and results must hold is `hostProtocol.ts`, which this side of the boot path can't load.

import { isRecord, type UnknownRecord } from './json.js';

export type FrameId = number | string;

export interface HostFrameError {
  /** A word, unlike JSON-RPC's numbers. */
  readonly code: string;
  readonly message: string;
  readonly data?: unknown;
}

export type HostFrame =
  | { readonly as: 'request'; readonly id: FrameId; readonly method: string; readonly params: unknown }
  | { readonly as: 'notification'; readonly method: string; readonly params: unknown }
  | { readonly as: 'success'; readonly id: FrameId; readonly result: unknown }
  /** id null: the other side could not tell which request it answers. */
  | { readonly as: 'error'; readonly id: FrameId | null; readonly error: HostFrameError };

export type ReadFrame = HostFrame | { readonly as: 'invalid'; readonly reason: 'not_json' | 'not_a_frame' };

/** One line. A host answers `not_a_frame` with `PROTOCOL_ERROR` and drops `not_json`; a client drops both. */
export function readHostFrame(line: string): ReadFrame {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return { as: 'invalid', reason: 'not_json' };
  }
  return classifyFrame(value) ?? { as: 'invalid', reason: 'not_a_frame' };
}

/** In the order of protocol/sdk.md 3: error, request, success, notification. null: none of them. */
function classifyFrame(value: unknown): HostFrame | null {
  if (!isRecord(value) || value['jsonrpc'] !== '2.0') return null;
  return asError(value) ?? asRequest(value) ?? asSuccess(value) ?? asNotification(value);
}

/** One line with its line end. */
export function encodeHostFrame(frame: HostFrame): string {
  return `${JSON.stringify({ jsonrpc: '2.0', ...membersOf(frame) })}\n`;
}

function membersOf(frame: HostFrame): object {
  switch (frame.as) {
    case 'request':
      return { id: frame.id, method: frame.method, params: frame.params };
    case 'notification':
      return { method: frame.method, params: frame.params };
    case 'success':
      // A result of undefined would vanish, and with it the answer.
      return { id: frame.id, result: frame.result ?? null };
    case 'error':
      return { id: frame.id, error: frame.error };
  }
}

function asError(value: UnknownRecord): HostFrame | null {
  const { id, error } = value;
  if (!isRecord(error) || !(id === null || isFrameId(id))) return null;
  const { code, message, data } = error;
  if (typeof code !== 'string' || code === '' || typeof message !== 'string') return null;
  return { as: 'error', id, error: { code, message, ...(data !== undefined && { data }) } };
}

function asRequest(value: UnknownRecord): HostFrame | null {
  const { id, method, params } = value;
  return isFrameId(id) && isMethod(method) ? { as: 'request', id, method, params } : null;
}

function asSuccess(value: UnknownRecord): HostFrame | null {
  const { id, result } = value;
  return isFrameId(id) && result !== undefined ? { as: 'success', id, result } : null;
}

function asNotification(value: UnknownRecord): HostFrame | null {
  const { method, params } = value;
  return !('id' in value) && isMethod(method) ? { as: 'notification', method, params } : null;
}

function isFrameId(id: unknown): id is FrameId {
  return typeof id === 'string' ? id !== '' : Number.isSafeInteger(id);
}

function isMethod(method: unknown): method is string {
  return typeof method === 'string' && method !== '';
}

// Which errors end the whole run rather than one branch of it (protocol/sdk.md 5.5). Guards against a budget or a
// cancel that `parallel()` would swallow (R24). Shared by the SDK and the host.

import { isRecord } from './json.js';

export const RUN_FATAL_CODES: readonly string[] = ['BUDGET_EXCEEDED', 'CANCELLED'];

/** Any value that was thrown. */
export function isRunFatal(reason: unknown): boolean {
  if (!isRecord(reason)) return false;
  const { fatal, code } = reason;
  return fatal === true || (typeof code === 'string' && RUN_FATAL_CODES.includes(code));
}

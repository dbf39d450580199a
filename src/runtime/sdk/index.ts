// `@boardwalk-labs/workflow` as programs import it: our own implementation over the host socket (protocol/sdk.md).

export {
  agent,
  artifacts,
  auth,
  computer,
  humanInput,
  phase,
  secrets,
  shell,
  sleep,
  usage,
  workflows,
} from './api.js';
export { HostError } from './hostError.js';
export { parallel } from './parallel.js';
export { normalizeReasoning } from './reasoning.js';
export { isRunFatal, RUN_FATAL_CODES } from '../../contract/runFatal.js';
export { makeCursor, STRIDE as TURN_CURSOR_STRIDE } from '../../contract/cursors.js';

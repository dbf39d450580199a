// `@boardwalk-labs/workflow/runtime`: what hosts and loaders use, not authors (protocol/sdk.md).

export { callHost, host } from './connection.js';
export { encodeValue } from './encode.js';
export { HostClient } from './hostClient.js';
export { HostError } from './hostError.js';
export { reviveValue } from './revive.js';

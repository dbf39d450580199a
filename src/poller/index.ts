// `boardwalk-fleet/poller`: from an offer to a sealed claim in the queue, and the identity that it polls with. A poller is
// made of an opened fleet (`boardwalk-fleet`), a `PoolClient` (`boardwalk-fleet/platform`) and an identity. Only programs
// outside import this file.

export {
  defaultIdentityDir,
  identitiesAt,

  /** Where the identity for a control plane and pool is. @throws OperatorError `CONTROL_PLANE_URL` */
  identityPath,
  readIdentity,
  saveIdentity,
  type Identity,

  /** Which identity, and in which directory. */
  type IdentityPlace,
} from './identity.js';
export type {
  /** By when an end must be over, on the clock of `performance.now()`. */
  StopOptions,
} from './leaseBeat.js';
export {
  /** Claims runs for free slots, queues them, and beats their leases until they are done. */
  Poller,
  type PollerEnd,
  /** What a poller is made of. */
  type PollerOptions,
} from './poller.js';

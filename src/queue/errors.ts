// What can go wrong with what is stored in Redis. None of these ever carries a secret or the stored text itself.

/** A sealed text that can't be opened: another key, another owner, or it was changed on its way. */
export class SealError extends Error {
  override readonly name = 'SealError';
  readonly code = 'SEAL_INVALID';
}

/** A record in Redis that this version can't read: written by a newer one, or by somebody else. */
export class RecordError extends Error {
  override readonly name = 'RecordError';
  readonly code = 'RECORD_INVALID';
}

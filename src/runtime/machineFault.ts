// Errors that say something about this machine and nothing about the run. They must not become the run's result: the
// process ends without a finalize, and the run starts again elsewhere (design section 6).

const FAULTS: ReadonlySet<unknown> = new Set([
  'ENOSPC',
  'EDQUOT',
  'EIO',
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'EROFS',
]);

export function isMachineFault(error: unknown): boolean {
  return error instanceof Error && 'code' in error && FAULTS.has(error.code);
}

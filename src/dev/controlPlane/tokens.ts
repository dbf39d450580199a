// Ids and credentials of the local control plane. Ids are random and not counted: a fleet's Redis outlives this
// process and remembers runs by their ids.

import { createHash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';

export type IdPrefix = 'run' | 'asg' | 'lse' | 'rnr' | 'wf' | 'wfv';

export function newId(prefix: IdPrefix): string {
  return `${prefix}_${randomUUID().replaceAll('-', '').slice(0, 20)}`;
}

/** Registration, runner, run, API and admin tokens; the prefixes are the platform's convention. */
export type TokenPrefix = 'bwkreg' | 'bwkr' | 'bwkrun' | 'bwkapi' | 'bwkadm';

export function newToken(prefix: TokenPrefix): string {
  return `${prefix}_${randomBytes(24).toString('base64url')}`;
}

/** Compares digests, so that neither content nor length of a guess shows in the time it takes. */
export function isSameToken(given: string | null, expected: string): boolean {
  return given !== null && timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

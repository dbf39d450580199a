// Has this process the fleet's key? Asked once at start: with another key it would take claims that it can't open, or
// make some that nobody else can, and each would only show as a run that doesn't start.

import type { Redis } from 'ioredis';
import { OperatorError } from '../contract/operatorError.js';
import { SealError } from './errors.js';
import type { FleetKeys } from './keys.js';
import type { Sealer } from './seal.js';

const OWNER = 'key-check';

/**
 * Opens what the first process of the fleet has sealed. Where only an older key of ours opens it, it is sealed anew: the
 * keys are being changed, and every process has the new one by then.
 *
 * @throws OperatorError `FLEET_KEY_FOREIGN`
 */
export async function checkFleetKey(redis: Redis, keys: FleetKeys, sealer: Sealer): Promise<void> {
  await redis.setnx(keys.keyCheck, sealer.seal(OWNER, ''));
  const sealed = await redis.get(keys.keyCheck);
  if (sealed === null) return;
  try {
    sealer.open(OWNER, sealed);
  } catch (cause) {
    if (!(cause instanceof SealError)) throw cause;
    throw new OperatorError(
      'FLEET_KEY_FOREIGN',
      `The fleet in this Redis has another key: ${sealer.keyIdOf(sealed)}, which is not in the fleet key file.`,
      {
        hint:
          "Give every process the same --fleet-key-file. If the fleet's key is lost, its queued runs are too: " +
          'use another --fleet name, or empty this Redis.',
        cause,
      },
    );
  }
  if (!sealer.seals(sealed)) await redis.set(keys.keyCheck, sealer.seal(OWNER, ''));
}

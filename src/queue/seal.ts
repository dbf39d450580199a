// Credentials and outputs are sealed before they touch Redis (AES-256-GCM). The owner is bound into the seal, so that
// a record that was copied to another owner's key does not open; the key id stands in the text, so that keys can be
// changed while old records are still about. What it does not hide: lengths, and who owns how many records.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { OperatorError } from '../contract/operatorError.js';
import { SealError } from './errors.js';

const KEY_FORMAT = /^bwfk1\.([A-Za-z0-9_-]{1,32})\.([A-Za-z0-9_-]{43})$/;
const SEAL_VERSION = 'bwfs1';
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export interface FleetKey {
  /** Not secret: it stands in every text that the key seals. */
  readonly id: string;
  /** 32 bytes. */
  readonly secret: Buffer;
}

/** A new fleet key as one line of text: `bwfk1.<id>.<32 bytes, base64url>`. */
export function generateFleetKey(): string {
  return `bwfk1.${randomBytes(4).toString('hex')}.${randomBytes(KEY_BYTES).toString('base64url')}`;
}

/**
 * Reads fleet keys, one a line; the first seals, all open. Empty lines and lines that start with `#` are skipped.
 *
 * @throws OperatorError `FLEET_KEY_INVALID`; its message names the line and never shows it.
 */
export function parseFleetKeys(text: string): readonly FleetKey[] {
  const keys: FleetKey[] = [];
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const [, id, secretText] = KEY_FORMAT.exec(line) ?? [];
    const secret = secretText === undefined ? undefined : Buffer.from(secretText, 'base64url');
    if (id === undefined || secret?.length !== KEY_BYTES) {
      throw invalidKey(`Line ${index + 1} of the fleet key is not a fleet key.`);
    }
    if (keys.some((key) => key.id === id)) throw invalidKey(`The fleet key has the id ${id} twice.`);
    keys.push({ id, secret });
  }
  if (keys.length === 0) throw invalidKey('The fleet key is empty.');
  return keys;
}

function invalidKey(message: string): OperatorError {
  return new OperatorError('FLEET_KEY_INVALID', message, {
    hint: 'A fleet key is one line as `boardwalk-fleet key generate` prints it; further lines are older keys.',
  });
}

export class Sealer {
  readonly #sealing: FleetKey;
  readonly #opening: ReadonlyMap<string, FleetKey>;

  /** @param keys as {@link parseFleetKeys} gives them; the first seals. */
  constructor(keys: readonly FleetKey[]) {
    const [sealing] = keys;
    if (sealing === undefined) throw invalidKey('There is no fleet key.');
    this.#sealing = sealing;
    this.#opening = new Map(keys.map((key) => [key.id, key]));
  }

  /** @param owner who alone may open it, e.g. `cred:<run id>`. */
  seal(owner: string, clear: string): string {
    const { id, secret } = this.#sealing;
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', secret, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(associated(id, owner));
    const sealed = Buffer.concat([nonce, cipher.update(clear, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return `${SEAL_VERSION}.${id}.${sealed.toString('base64url')}`;
  }

  /** Id of the key that a text was sealed with; not secret. */
  keyIdOf(text: string): string {
    return text.split('.')[1] ?? 'unknown';
  }

  /** Whether a text was sealed with the key that this one seals with. */
  seals(text: string): boolean {
    return this.keyIdOf(text) === this.#sealing.id;
  }

  /** @throws SealError */
  open(owner: string, text: string): string {
    const [version, id, body, ...rest] = text.split('.');
    if (version !== SEAL_VERSION || id === undefined || body === undefined || rest.length > 0) {
      throw new SealError(`The record of ${owner} is not sealed as this version seals.`);
    }
    const key = this.#opening.get(id);
    if (key === undefined) {
      throw new SealError(
        `The record of ${owner} is sealed with the fleet key ${id}, which this process doesn't have.`,
      );
    }
    const sealed = Buffer.from(body, 'base64url');
    if (sealed.length < NONCE_BYTES + TAG_BYTES) throw new SealError(`The record of ${owner} is cut short.`);
    const tagAt = sealed.length - TAG_BYTES;
    const decipher = createDecipheriv('aes-256-gcm', key.secret, sealed.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    });
    decipher.setAAD(associated(id, owner));
    decipher.setAuthTag(sealed.subarray(tagAt));
    try {
      const clear = decipher.update(sealed.subarray(NONCE_BYTES, tagAt));
      return Buffer.concat([clear, decipher.final()]).toString('utf8');
    } catch {
      throw new SealError(`The record of ${owner} was sealed for somebody else, or changed.`);
    }
  }
}

function associated(keyId: string, owner: string): Buffer {
  return Buffer.from(`${SEAL_VERSION}.${keyId}.${owner}`, 'utf8');
}

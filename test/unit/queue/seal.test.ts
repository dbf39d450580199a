import { describe, expect, it } from 'vitest';
import { OperatorError } from '../../../src/contract/operatorError.js';
import { SealError } from '../../../src/queue/errors.js';
import { generateFleetKey, parseFleetKeys, Sealer } from '../../../src/queue/seal.js';

const someKeys = () => parseFleetKeys(generateFleetKey());

describe('fleet keys', () => {
  it('are one line each, and the line reads back as the key it was made of', () => {
    const line = generateFleetKey();
    const [key] = parseFleetKeys(`# made today\n\n${line}\r\n`);
    expect(line).toMatch(/^bwfk1\.[0-9a-f]{8}\.[A-Za-z0-9_-]{43}$/);
    expect(`bwfk1.${key?.id ?? ''}.${key?.secret.toString('base64url') ?? ''}`).toBe(line);
  });

  it.each([
    ['nothing', ''],
    ['only comments', '# none\n'],
    ['another format', 'hunter2-hunter2'],
    ['a short secret', 'bwfk1.abcd.c2hvcnQ'],
  ])('are refused when they are %s, without being shown', (_, text) => {
    const refusal = catchError(() => parseFleetKeys(text));
    expect(refusal).toBeInstanceOf(OperatorError);
    expect(refusal).toMatchObject({ code: 'FLEET_KEY_INVALID' });
    if (text.trim() !== '') expect(refusal.message).not.toContain(text);
  });

  it('are refused when one id stands for two', () => {
    const line = generateFleetKey();
    expect(catchError(() => parseFleetKeys(`${line}\n${line}`))).toMatchObject({ code: 'FLEET_KEY_INVALID' });
  });
});

describe('sealing', () => {
  it('opens for its owner and hides the text', () => {
    const sealer = new Sealer(someKeys());
    const sealed = sealer.seal('cred:run_1', 'clear text');
    expect(sealed).not.toContain('clear text');
    expect(sealer.open('cred:run_1', sealed)).toBe('clear text');
  });

  it('never makes the same text twice', () => {
    const sealer = new Sealer(someKeys());
    expect(sealer.seal('a', 'text')).not.toBe(sealer.seal('a', 'text'));
  });

  it('does not open for another owner', () => {
    const sealer = new Sealer(someKeys());
    const sealed = sealer.seal('cred:run_1', 'clear text');
    expect(() => sealer.open('cred:run_2', sealed)).toThrow(SealError);
    expect(() => sealer.open('identity:run_1', sealed)).toThrow(SealError);
  });

  it('does not open with another key, also not one of the same id', () => {
    const [key] = someKeys();
    const [other] = someKeys();
    if (key === undefined || other === undefined) throw new Error('no keys');
    const sealed = new Sealer([key]).seal('a', 'text');
    expect(() => new Sealer([other]).open('a', sealed)).toThrow(/doesn't have/);
    expect(() => new Sealer([{ ...other, id: key.id }]).open('a', sealed)).toThrow(SealError);
  });

  it('does not open when any byte was changed, or some are missing', () => {
    const sealer = new Sealer(someKeys());
    const sealed = sealer.seal('a', 'text');
    const [version = '', id = '', body = ''] = sealed.split('.');
    const bytes = Buffer.from(body, 'base64url');
    for (const index of bytes.keys()) {
      const changed = Buffer.from(bytes);
      changed[index] = (changed[index] ?? 0) ^ 1;
      expect(() => sealer.open('a', `${version}.${id}.${changed.toString('base64url')}`)).toThrow(SealError);
    }
    for (const text of [
      '',
      'text',
      `${version}.${id}`,
      `${version}.${id}.AAAA`,
      `${sealed}.more`,
      `v0.${id}.${body}`,
    ]) {
      expect(() => sealer.open('a', text)).toThrow(SealError);
    }
  });

  it('seals with the first key and still opens what older keys sealed', () => {
    const [older] = someKeys();
    const [newer] = someKeys();
    if (older === undefined || newer === undefined) throw new Error('no keys');
    const old = new Sealer([older]).seal('a', 'old text');
    const rotated = new Sealer([newer, older]);
    expect(rotated.open('a', old)).toBe('old text');
    expect(new Sealer([newer]).open('a', rotated.seal('a', 'new text'))).toBe('new text');
  });
});

function catchError(work: () => unknown): Error {
  try {
    work();
  } catch (error) {
    if (error instanceof Error) return error;
  }
  throw new Error('Nothing was thrown.');
}

import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Parser, type ReadEntry } from 'tar';
import { describe, expect, it } from 'vitest';
import { packArchive, Programs } from '../../../src/dev/controlPlane/programs.js';

async function unpacked(
  archive: Uint8Array,
): Promise<Record<string, { text: string; mtime: number; uid: unknown }>> {
  const files: Record<string, { text: string; mtime: number; uid: unknown }> = {};
  const parser = new Parser({
    onReadEntry: (entry: ReadEntry) => {
      const chunks: Buffer[] = [];
      entry.on('data', (chunk: Buffer) => chunks.push(chunk));
      entry.on('end', () => {
        files[entry.path] = {
          text: Buffer.concat(chunks).toString(),
          mtime: entry.mtime?.getTime() ?? 0,
          uid: entry.uid ?? 0,
        };
      });
    },
  });
  await pipeline(Readable.from([archive]), parser as unknown as NodeJS.WritableStream);
  return files;
}

describe('a program', () => {
  it('is an archive of the entry and the descriptor, without times and owners', async () => {
    const source = `export default () => ${'"é"'.repeat(400)};`;
    const { archive, digest, entry } = new Programs().fromSource(source, { slug: 'a' });
    expect(digest).toBe(createHash('sha256').update(archive).digest('hex'));
    const files = await unpacked(archive);
    expect(Object.keys(files)).toEqual(['index.mjs', 'workflow.jsonc']);
    expect(files[entry]).toEqual({ text: source, mtime: 0, uid: 0 });
    expect(JSON.parse(files['workflow.jsonc']?.text ?? '')).toEqual({ slug: 'a' });
  });

  it('is the same for the same content, in this process and in another', () => {
    const programs = new Programs();
    const first = programs.fromSource('a', {});
    expect(programs.fromSource('a', {})).toBe(first);
    expect(new Programs().fromSource('a', {}).digest).toBe(first.digest);
    expect(programs.fromSource('a', { slug: 'b' }).digest).not.toBe(first.digest);
    expect(programs.archive(first.digest)).toBe(first.archive);
    expect(programs.archive('none')).toBeUndefined();
  });

  it('refuses a path that its header has no room for', () => {
    expect(() => packArchive({ ['x'.repeat(300)]: '' })).toThrow(RangeError);
  });
});

// Programs as archives, made from a source text or given whole. Equal content makes equal bytes and one digest
// (protocol/program.md 1), so that a thousand runs of one source are one archive here and one download on an executor.

import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { Header } from 'tar';

export interface Program {
  readonly archive: Uint8Array;
  /** SHA-256 of the archive; what the version tells may differ when a test wants it to. */
  readonly digest: string;
  /** Path of the entry inside the archive. */
  readonly entry: string;
}

export class Programs {
  readonly #byDigest = new Map<string, Uint8Array>();
  readonly #bySource = new Map<string, Program>();

  /** @param source text of the entry module */
  fromSource(source: string, manifest: unknown): Program {
    const descriptor = `${JSON.stringify(manifest, null, 2)}\n`;
    const content = createHash('sha256').update(descriptor).update('\0').update(source).digest('hex');
    const known = this.#bySource.get(content);
    if (known !== undefined) return known;
    const archive = packArchive({ 'index.mjs': source, 'workflow.jsonc': descriptor });
    const program = this.fromArchive(archive, 'index.mjs');
    this.#bySource.set(content, program);
    return program;
  }

  fromArchive(archive: Uint8Array, entry: string): Program {
    const digest = createHash('sha256').update(archive).digest('hex');
    this.#byDigest.set(digest, archive);
    return { archive, digest, entry };
  }

  /** The archive with this digest; `undefined` when there is none. */
  archive(digest: string): Uint8Array | undefined {
    return this.#byDigest.get(digest);
  }
}

const BLOCK = 512;

/** A gzip tar of these files, in the order of their names, without times and owners. */
export function packArchive(files: Readonly<Record<string, string | Uint8Array>>): Buffer {
  const parts: Uint8Array[] = [];
  for (const path of Object.keys(files).sort()) {
    const content = Buffer.from(files[path] ?? '');
    const header = new Header({ path, mode: 0o644, size: content.length, type: 'File' });
    // A name that doesn't fit needs a second header, which would go unwritten.
    if (header.encode()) throw new RangeError(`the path is too long for a plain tar header: ${path}`);
    parts.push(
      header.block ?? Buffer.alloc(BLOCK),
      content,
      Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK),
    );
  }
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]));
}

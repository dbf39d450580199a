// Archives for tests, member by member, however hostile.

import { gzipSync } from 'node:zlib';
import { Header } from 'tar';

export interface Member {
  readonly path: string;
  readonly content?: string;
  readonly type?: 'File' | 'Directory' | 'SymbolicLink' | 'Link' | 'CharacterDevice' | 'FIFO';
  readonly linkpath?: string;
  /** Claimed size, when it is to differ. */
  readonly size?: number;
}

/** A gzip tar with exactly these members. */
export function archiveOf(members: readonly Member[]): Buffer {
  return gzipSync(tarOf(members));
}

export function tarOf(members: readonly Member[]): Buffer {
  const blocks = members.flatMap(({ path, content = '', type = 'File', linkpath, size }) => {
    const body = Buffer.from(content);
    const header = Buffer.alloc(512);
    new Header({
      path,
      type,
      mode: 0o644,
      size: size ?? body.length,
      ...(linkpath === undefined ? {} : { linkpath }),
    }).encode(header);
    return [header, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

// Directories of this machine that sandboxes see, as SRC:DST[:ro|:rw]. Guards against a mount that hides what every
// sandbox needs in its place, and against a second one that hides the first.

import { posix } from 'node:path';

export interface Mount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/** What the sandbox itself puts there. */
const TAKEN = ['/', '/workspace', '/tmp'];
const TAKEN_WITH_ALL_BELOW = ['/run/boardwalk-fleet', '/opt/boardwalk-fleet'];

/** The mounts, or in words what is wrong with the first bad one. */
export function parseMounts(texts: readonly string[]): readonly Mount[] | string {
  const mounts: Mount[] = [];
  for (const text of texts) {
    const mount = parseMount(text);
    if (typeof mount === 'string') return mount;
    if (mounts.some(({ target }) => target === mount.target))
      return `must not mount twice at ${mount.target}`;
    mounts.push(mount);
  }
  return mounts;
}

export function mountText({ source, target, readOnly }: Mount): string {
  return `${source}:${target}:${readOnly ? 'ro' : 'rw'}`;
}

function parseMount(text: string): Mount | string {
  const [source = '', target = '', mode = 'ro', ...more] = text.split(':');
  if (source === '' || target === '' || more.length > 0 || (mode !== 'ro' && mode !== 'rw'))
    return 'must be SRC:DST, SRC:DST:ro or SRC:DST:rw';
  if (!posix.isAbsolute(source) || !posix.isAbsolute(target)) return 'must have absolute paths';
  const place = normal(target);
  if (TAKEN.includes(place) || TAKEN_WITH_ALL_BELOW.some((dir) => `${place}/`.startsWith(`${dir}/`)))
    return `must not mount at ${place}: the sandbox needs that place itself`;
  return { source: normal(source), target: place, readOnly: mode === 'ro' };
}

/** Without a slash at the end, doubled ones and dots: two ways to write one place are one place. */
function normal(path: string): string {
  return posix.resolve('/', path);
}

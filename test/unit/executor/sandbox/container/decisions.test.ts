// What is decided of images and leftovers, from what an engine says.

import { describe, expect, it } from 'vitest';
import type { Presence } from '../../../../../src/executor/home.js';
import { imageErrorCode, withTag } from '../../../../../src/executor/sandbox/container/image.js';
import { isLeftOver } from '../../../../../src/executor/sandbox/container/reaper.js';

describe('an image', () => {
  it.each([
    ['node', 'node:latest'],
    ['node:24', 'node:24'],
    ['registry.example:5000/team/node', 'registry.example:5000/team/node:latest'],
    ['registry.example:5000/team/node:24', 'registry.example:5000/team/node:24'],
    ['node@sha256:abc', 'node@sha256:abc'],
  ])('%s is pulled as %s', (image, pulled) => {
    expect(withTag(image)).toBe(pulled);
  });

  it.each([
    ['pull access denied for x, repository does not exist or may require docker login', 'IMAGE_DENIED'],
    ['unauthorized: authentication required', 'IMAGE_DENIED'],
    ['manifest for node:99 not found: manifest unknown', 'IMAGE_MISSING'],
    ['invalid reference format', 'IMAGE_MISSING'],
    ['Get "https://r/v2/": dial tcp: lookup r: no such host', 'IMAGE_UNREACHABLE'],
    ['no progress for 20 s', 'IMAGE_UNREACHABLE'],
  ])('that can’t be had because "%s" is %s (P38)', (why, code) => {
    expect(imageErrorCode(why)).toBe(code);
  });
});

describe('a container of another executor', () => {
  const NOW = 1_700_000_000_000;
  const at = (State: string, agoMs: number): { State: string; Created: number } => ({
    State,
    Created: (NOW - agoMs) / 1_000,
  });

  it.each<[Presence, string, number, boolean]>([
    // Its process is gone: whatever it does, nobody wants it.
    ['gone', 'running', 1_000, true],
    ['gone', 'paused', 1_000, true],
    ['gone', 'exited', 1_000, true],
    // It lives and looks after its own.
    ['alive', 'running', 86_400_000, false],
    ['alive', 'exited', 86_400_000, false],
    // Frozen: what runs may be another's proof that its lock still holds; its own switch ends it.
    ['silent', 'running', 86_400_000, false],
    ['silent', 'exited', 1_000, true],
    // Another host's, or out of sight: only what has long ended.
    ['unknown', 'running', 86_400_000, false],
    ['unknown', 'exited', 1_000, false],
    ['unknown', 'exited', 86_400_000, true],
    ['unknown', 'created', 86_400_000, true],
  ])('that is %s, %s, made %i ms ago: removed is %s (P32, P35)', (presence, state, agoMs, removed) => {
    expect(isLeftOver(at(state, agoMs), presence, NOW)).toBe(removed);
  });
});

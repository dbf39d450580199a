// Removes containers that nobody owns any more. It guards against survivors of a killed executor (P31, P32: running ones
// too), and against the opposite: a clean-up that takes containers of another host or of a living neighbour (P35).
//
// A running container is ended only when its executor is proven gone; otherwise its own dead man's switch ends it.

import type Docker from 'dockerode';
import type { Logger } from 'pino';
import { presenceOf, type Presence } from '../../home.js';
import { LABEL } from './createOptions.js';
import { removeContainer } from './containerSandbox.js';
import { within } from './engine.js';

/** Of a container that nobody here can vouch for: its owner, on another host or in another container, reads it at once. */
const SETTLED_MS = 600_000;
const LIST_MS = 30_000;

export interface ReaperOptions {
  readonly docker: Docker;
  readonly fleetName: string;
  readonly executorId: string;
  readonly bootId: string;
  readonly log: Logger;
}

type Found = Docker.ContainerInfo;

/** Containers with all of these labels, whatever they do. */
export async function listOurs(docker: Docker, label: readonly string[]): Promise<readonly Found[]> {
  return within(
    docker.listContainers({ all: true, filters: { label: [...label] } }),
    LIST_MS,
    'list containers',
  );
}

/** @returns ids of sandboxes that it has removed */
export async function reapContainers(options: ReaperOptions): Promise<readonly string[]> {
  const { docker, fleetName, executorId, log } = options;
  const found = await listOurs(docker, [`${LABEL.fleet}=${fleetName}`]);
  const strangers = found.filter(({ Labels }) => Labels[LABEL.executor] !== executorId);
  const presences = new Map<string, Presence>();
  for (const { Labels } of strangers) {
    const home = Labels[LABEL.home] ?? '';
    if (isOfThisBoot(Labels, options) && !presences.has(home)) presences.set(home, await presenceOf(home));
  }
  const reaped: string[] = [];
  for (const each of strangers) {
    const presence = isOfThisBoot(each.Labels, options)
      ? presences.get(each.Labels[LABEL.home] ?? '')
      : undefined;
    if (!isLeftOver(each, presence ?? 'unknown')) continue;
    const why = await removeContainer(docker.getContainer(each.Id));
    const sandboxId = each.Labels[LABEL.sandbox] ?? each.Id;
    if (why === undefined) reaped.push(sandboxId);
    else log.error({ sandboxId, why }, 'a leftover container can not be removed');
  }
  return reaped;
}

function isOfThisBoot(labels: Found['Labels'], { bootId }: ReaperOptions): boolean {
  return labels[LABEL.bootId] === bootId;
}

/** Whether nobody can want a container any more whose executor looks like that from here. */
export function isLeftOver(
  { State, Created }: Pick<Found, 'State' | 'Created'>,
  presence: Presence,
  nowMs = Date.now(),
): boolean {
  const runs = State === 'running' || State === 'paused' || State === 'restarting';
  switch (presence) {
    case 'gone':
      return true;
    case 'alive':
      return false;
    case 'silent':
      // Its executor is frozen; when it wakes it finds itself fenced and wants nothing of this one.
      return State === 'exited' || State === 'dead';
    case 'unknown':
      return !runs && nowMs - Created * 1_000 > SETTLED_MS;
  }
}

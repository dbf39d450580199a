// The engine and the run image that `npm test` hands to container tests, and what a fleet has in that engine.

import type Docker from 'dockerode';
import { findEngine } from '../../src/executor/sandbox/container/engine.js';
import { LABEL } from '../../src/executor/sandbox/container/createOptions.js';

/** `DOCKER_HOST` and the image: what a process of the program needs for containers. */
export function engineEnvironment(): {
  readonly DOCKER_HOST: string;
  readonly BOARDWALK_FLEET_IMAGE: string;
} {
  return { DOCKER_HOST: process.env['DOCKER_HOST'] ?? '', BOARDWALK_FLEET_IMAGE: testImage() };
}

export function testImage(): string {
  return process.env['BWF_TEST_IMAGE'] ?? '';
}

export async function testEngine(): Promise<Docker> {
  return (await findEngine(process.env)).docker;
}

/** Containers of executors whose work directory lies below `dir`, whatever state they are in. */
export async function containersBelow(docker: Docker, dir: string): Promise<readonly Docker.ContainerInfo[]> {
  const ours = await docker.listContainers({ all: true, filters: { label: [LABEL.home] } });
  return ours.filter(({ Labels }) => Labels[LABEL.home]?.startsWith(`${dir}/`) === true);
}

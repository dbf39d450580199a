// The network of sandboxes. One bridge for all of them, in which they don't see each other: one a run would use up the
// engine's addresses (P41), and the host's own network would show Redis and the machine's services to a program (R5).

import type Docker from 'dockerode';
import { OperatorError } from '../../../contract/operatorError.js';
import { engineErrorText, engineStatus, within } from './engine.js';

/** Default of `--network`: made when it is missing. */
export const OUR_NETWORK = 'boardwalk-fleet';
const BUILT_IN = ['none', 'host'];
const CALL_MS = 20_000;

/** @throws OperatorError `NETWORK_MISSING` */
export async function ensureNetwork(docker: Docker, name: string): Promise<void> {
  if (BUILT_IN.includes(name)) return;
  if (await hasNetwork(docker, name)) return;
  if (name !== OUR_NETWORK)
    throw networkError(
      name,
      'the engine does not know it',
      `Make it with \`docker network create ${name}\`.`,
    );
  try {
    await within(
      docker.createNetwork({
        Name: name,
        CheckDuplicate: true,
        Driver: 'bridge',
        Options: { 'com.docker.network.bridge.enable_icc': 'false' },
        Labels: { 'boardwalk-fleet.network': 'sandboxes' },
      }),
      CALL_MS,
      'create a network',
    );
  } catch (error) {
    // Another executor of this host was faster.
    if (engineStatus(error) === 409 && (await hasNetwork(docker, name))) return;
    throw networkError(name, engineErrorText(error), 'Name one that is there, or `none`, with --network.');
  }
}

async function hasNetwork(docker: Docker, name: string): Promise<boolean> {
  try {
    await within(docker.getNetwork(name).inspect(), CALL_MS, 'tell of a network');
    return true;
  } catch (error) {
    if (engineStatus(error) === 404) return false;
    throw networkError(name, engineErrorText(error), 'Look at the engine.');
  }
}

function networkError(name: string, why: string, hint: string): OperatorError {
  return new OperatorError('NETWORK_MISSING', `The network ${name} can't be used: ${why}.`, { hint });
}

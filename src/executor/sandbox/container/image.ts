// Sees that the image of sandboxes is there before the first run needs it. It guards against an image that can't be had
// and hangs every run instead of telling somebody (P38): a pull that makes no progress is given up, and why it failed is
// told apart.

import type Docker from 'dockerode';
import type { Logger } from 'pino';
import { OperatorError } from '../../../contract/operatorError.js';
import { engineErrorText, engineStatus, within } from './engine.js';

const INSPECT_MS = 10_000;
/** Of silence; a layer that is being loaded or unpacked says so all the time. */
const STALL_MS = 20_000;

export type ImageErrorCode = 'IMAGE_MISSING' | 'IMAGE_DENIED' | 'IMAGE_UNREACHABLE';

/**
 * Pulls the image unless the engine has it.
 *
 * @throws OperatorError with an {@link ImageErrorCode}
 */
export async function ensureImage(docker: Docker, image: string, log: Logger): Promise<void> {
  if (await hasImage(docker, image)) return;
  log.info({ image }, 'pulling the image of sandboxes');
  try {
    await pull(docker, withTag(image), log);
  } catch (error) {
    throw imageError(image, engineErrorText(error));
  }
  if (!(await hasImage(docker, image))) throw imageError(image, 'not found after the pull');
}

/** Without a tag an engine would pull all of them. */
export function withTag(image: string): string {
  const name = image.slice(image.lastIndexOf('/') + 1);
  return name.includes(':') || name.includes('@') ? image : `${image}:latest`;
}

export async function hasImage(docker: Docker, image: string): Promise<boolean> {
  try {
    await within(docker.getImage(image).inspect(), INSPECT_MS, 'tell of an image');
    return true;
  } catch (error) {
    if (engineStatus(error) === 404) return false;
    throw imageError(image, engineErrorText(error));
  }
}

async function pull(docker: Docker, image: string, log: Logger): Promise<void> {
  const ended = new AbortController();
  let stalled: NodeJS.Timeout | undefined;
  const progress = (): void => {
    clearTimeout(stalled);
    stalled = setTimeout(() => ended.abort(), STALL_MS);
  };
  progress();
  try {
    const stream = await docker.pull(image, { abortSignal: ended.signal });
    await new Promise<void>((resolve, reject) => {
      ended.signal.addEventListener('abort', () => reject(new Error('no progress')), { once: true });
      docker.modem.followProgress(
        stream,
        (error) => {
          if (error === null) resolve();
          else reject(error);
        },
        (event: { readonly status?: string; readonly id?: string }) => {
          progress();
          if (event.status === 'Pull complete') log.info({ image, layer: event.id }, 'layer pulled');
        },
      );
    });
  } catch (error) {
    if (ended.signal.aborted) throw new Error(`no progress for ${STALL_MS / 1_000} s`, { cause: error });
    throw error;
  } finally {
    clearTimeout(stalled);
  }
}

function imageError(image: string, why: string): OperatorError {
  const code = imageErrorCode(why);
  const hint =
    code === 'IMAGE_DENIED'
      ? 'Log the engine in at its registry (docker login), pull it by hand, or name another image.'
      : 'Name an image that has Node.js with --image REF (BOARDWALK_FLEET_IMAGE), or load this one into the engine.';
  return new OperatorError(code, `The image ${image} can't be had: ${why}.`, {
    hint: `${hint}\nOr pass --host to run programs as plain processes of this machine, without isolation.`,
  });
}

/** Engines tell the causes apart in words only. */
export function imageErrorCode(why: string): ImageErrorCode {
  if (/denied|unauthori[sz]ed|authentication|forbidden/i.test(why)) return 'IMAGE_DENIED';
  if (/not found|manifest unknown|no such image|invalid reference/i.test(why)) return 'IMAGE_MISSING';
  return 'IMAGE_UNREACHABLE';
}

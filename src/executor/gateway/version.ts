// Which program a run executes, and where its archive is. It guards the download address, which is presigned and so a
// credential: the sandbox sees only a path of ours, behind which the archive is streamed.

import { isRecord } from '../../contract/json.js';
import { Refusal } from './answers.js';
import type { Call } from './calls.js';
import { type ProgramDependencies, relayProgram } from './program.js';
import { forward, type RelayDependencies } from './relay.js';
import type { RoutedCall } from './routes.js';
import { passedHeaders } from './upstream.js';

export interface VersionDependencies {
  readonly runId: string;
  readonly relay: RelayDependencies;
  readonly program: ProgramDependencies;
}

export class Version {
  readonly #deps: VersionDependencies;
  #downloadUrl: string | undefined;

  constructor(deps: VersionDependencies) {
    this.#deps = deps;
  }

  /** Passes the platform's answer on with the download address replaced. @throws Refusal 502 when it has none */
  async answer(call: Call, route: RoutedCall): Promise<void> {
    const answer = await forward(call, route, undefined, this.#deps.relay);
    if (answer.status !== 200) {
      call.answer(answer.status, answer.body, passedHeaders(answer.headers));
      return;
    }
    const path = `/runner/v1/runs/${encodeURIComponent(this.#deps.runId)}/_fleet/program`;
    const rewritten = rewrite(answer.body, path);
    if (rewritten === undefined) {
      throw new Refusal(502, 'CONTROL_PLANE_INVALID', 'The version names no usable program.downloadUrl.');
    }
    this.#downloadUrl = rewritten.downloadUrl;
    call.json(200, rewritten.version);
  }

  /** @throws Refusal 409 while no version was asked for */
  async program(call: Call): Promise<void> {
    if (this.#downloadUrl === undefined) {
      throw new Refusal(409, 'VERSION_FIRST', 'The program is known only after version was asked for.');
    }
    await relayProgram(call, this.#downloadUrl, this.#deps.program);
  }
}

/** Everything but the address stays as it is, also what we don't know. */
function rewrite(
  body: Buffer,
  path: string,
): { readonly version: unknown; readonly downloadUrl: string } | undefined {
  let version: unknown;
  try {
    version = JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
  if (!isRecord(version) || !isRecord(version['program'])) return undefined;
  const { downloadUrl } = version['program'];
  if (typeof downloadUrl !== 'string' || !isHttpUrl(downloadUrl)) return undefined;
  return { version: { ...version, program: { ...version['program'], downloadUrl: path } }, downloadUrl };
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

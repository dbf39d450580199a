// What an executor hands a sandbox: one JSON line on its standard input, because arguments, environment and labels can
// be read by others (the bearer opens the run's gateway). No credential of the platform is in it. Must not import a
// validation library: reading it is the first thing that a runtime does.

import { Fields } from './fields.js';
import { WireError } from './wireError.js';

const HAND_OVER_VERSION = 1;

/** Exit code of a runtime whose run could not go on because the platform did not answer (EX_TEMPFAIL). */
export const EXIT_UNREACHABLE = 75;

export interface HandOver {
  readonly v: 1;
  readonly runId: string;
  /** Worker id of the run lease: `<runner id>/<assignment id>`. */
  readonly workerId: string;
  /** HTTP/1.1 over this Unix socket, paths as in protocol/run-control.md, base path empty. */
  readonly gateway: { readonly socketPath: string; readonly bearer: string };
  readonly workspaceDir: string;
  /** Where the program's socket is made: private, short, and removed by the executor whatever becomes of the runtime. */
  readonly hostSocketDir: string;
  /** Where archives are unpacked; never inside `workspaceDir`. */
  readonly programRoot: string;
  /** Folder that is served as `@boardwalk-labs/workflow`. */
  readonly sdkDir: string;
  /** Node for the program; null: the runtime's own. */
  readonly nodePath: string | null;
  readonly vcpus: number;
  /** Between asking a program to stop and killing it; 30 000 unless configured (protocol/program.md 8.2). */
  readonly stopGraceMs: number;
  readonly debug: boolean;
}

/** One line with its line end. */
export function encodeHandOver(handOver: HandOver): string {
  return `${JSON.stringify(handOver)}\n`;
}

/** @throws WireError that names the field, never its value */
export function parseHandOver(line: string): HandOver {
  const fields = new Fields(ENDPOINT, parseJson(line));
  if (fields.get('v') !== HAND_OVER_VERSION)
    throw fields.wrong('v', `must be ${HAND_OVER_VERSION}: runtime and executor differ`);
  const gateway = fields.object('gateway');
  const nodePath = fields.get('nodePath');
  if (nodePath !== null && typeof nodePath !== 'string')
    throw fields.wrong('nodePath', 'must be a string or null');
  const vcpus = fields.get('vcpus');
  if (typeof vcpus !== 'number' || !(vcpus > 0)) throw fields.wrong('vcpus', 'must be a number above 0');
  return {
    v: HAND_OVER_VERSION,
    runId: fields.string('runId'),
    workerId: fields.string('workerId'),
    gateway: { socketPath: gateway.string('socketPath'), bearer: gateway.string('bearer') },
    workspaceDir: fields.string('workspaceDir'),
    hostSocketDir: fields.string('hostSocketDir'),
    programRoot: fields.string('programRoot'),
    sdkDir: fields.string('sdkDir'),
    nodePath,
    vcpus,
    stopGraceMs: fields.integer('stopGraceMs'),
    debug: fields.boolean('debug'),
  };
}

const ENDPOINT = 'hand-over';

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // The parser's own message quotes the text, and the text holds the bearer.
    throw new WireError({ endpoint: ENDPOINT, field: '', problem: 'is not JSON' });
  }
}

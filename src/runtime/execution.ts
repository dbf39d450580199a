// The middle of a run: host, program, meters (protocol/run-control.md 3, steps 6 and 10 to 14). It guards that whatever
// was opened for the program is closed again, and that everything the program spent is reported before the finalize.

import { setMaxListeners } from 'node:events';
import type { HandOver } from '../contract/handOver.js';
import { isRecord } from '../contract/json.js';
import type { Manifest } from '../contract/manifest.js';
import { effectiveInput } from '../contract/runAnswers.js';
import type { RunClaim } from '../contract/runControl.js';
import { redactDeep } from '../redaction/redact.js';
import type { SecretSet } from '../redaction/secretSet.js';
import { ProgramOutput } from './programOutput.js';
import { Agents } from './agent/leaf.js';
import { Budget } from './budget.js';
import { Capabilities } from './capabilities.js';
import { CONSOLE_METHOD } from './loaderCalls.js';
import { programContext, programInput } from './context.js';
import type { Control } from './control.js';
import type { EventStream } from './eventStream.js';
import { HostServer } from './hostServer.js';
import type { Outcome } from './outcome.js';
import type { ProcessGroups } from './processGroups.js';
import { programEnvironment } from './programEnvironment.js';
import { ProgramReport } from './programReport.js';
import { runProgram } from './programRun.js';
import { curate, RunFailure } from './runFailure.js';
import type { RunStop } from './runStop.js';
import { Secrets } from './secrets.js';
import { UsageReports } from './usageReports.js';

/** What an execution needs of its run. */
export interface RunningRun {
  readonly handOver: HandOver;
  /** The runtime's own. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly control: Control;
  readonly secrets: SecretSet;
  readonly stop: RunStop;
  readonly groups: ProcessGroups;
  readonly log: (message: string) => void;
  readonly claim: RunClaim;
  readonly manifest: Manifest;
  readonly events: EventStream;
  /** ms since the claim. */
  readonly elapsedMs: () => number;
}

/** @throws RunFailure when the program could not be started */
export async function executeProgram(entryPath: string, run: RunningRun): Promise<Outcome> {
  const { handOver, control, secrets, stop, log, elapsedMs, manifest } = run;
  const calls = callsOf(stop);
  const secretCalls = new Secrets({ control, known: secrets, signal: calls.signal });
  const env = programEnvironment(run.env, await secretCalls.environment(manifest.env));
  const { maxUsd, maxTokens, maxComputeSeconds } = manifest.budget;
  const budget = new Budget({ usd: maxUsd, tokens: maxTokens, compute: maxComputeSeconds }, elapsedMs);
  const usage = new UsageReports({ runId: handOver.runId, vcpus: handOver.vcpus, control, log, elapsedMs });
  const report = new ProgramReport();
  const { server, output, capabilities } = buildHost(run, {
    secretCalls,
    env,
    budget,
    usage,
    report,
    signal: calls.signal,
  });
  const socketPath = await server.start().catch((cause: unknown) => {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new RunFailure('HOST_BUILD_FAILED', message, { cause });
  });
  usage.start();
  try {
    const end = await runProgram({
      ...handOver,
      entryPath,
      cwd: handOver.workspaceDir,
      env,
      socketPath,
      host: server,
      report,
      output,
      groups: run.groups,
      onStop: (listener) => stop.onStop(listener),
    });
    if (end.kind === 'failed') {
      if (handOver.debug && report.stack !== undefined) log(`the program failed: ${report.stack}`);
      return { kind: 'failed', error: curate(end.thrown, secrets) };
    }
    const { value } = end;
    // null makes no row.
    if (stop.reason === undefined && value !== null && value !== undefined) {
      run.events.emit({ kind: 'output', value: redactDeep(value, secrets) ?? null });
    }
    return { kind: 'completed', value };
  } finally {
    // A call that nobody waits for any more must not go on beside the finalize, or emit a row after it.
    calls.abort(new RunFailure('CANCELLED', 'The program has ended.'));
    await capabilities.settled();
    await server.stop();
    await usage.finish();
  }
}

/** Ends the calls of a program: with the run, or with the program itself. */
function callsOf(stop: RunStop): AbortController {
  const calls = new AbortController();
  // Every call in progress listens; a program may make any number at once.
  setMaxListeners(0, calls.signal);
  stop.onStop(() => calls.abort(stop.signal.reason));
  return calls;
}

interface HostParts {
  readonly secretCalls: Secrets;
  readonly env: Readonly<Record<string, string>>;
  readonly budget: Budget;
  readonly usage: UsageReports;
  readonly report: ProgramReport;
  readonly signal: AbortSignal;
}

interface Host {
  readonly server: HostServer;
  readonly output: ProgramOutput;
  readonly capabilities: Capabilities;
}

function buildHost(run: RunningRun, parts: HostParts): Host {
  const { handOver, claim, manifest, control, events, secrets, groups, log } = run;
  const { budget, usage, env, signal } = parts;
  const capabilities = new Capabilities({
    ...parts,
    input: programInput(effectiveInput(claim.run), manifest.inputSchema),
    inputSchema: manifest.inputSchema,
    context: programContext(claim, handOver.workspaceDir),
    agents: new Agents({ control, events, secrets, budget, usage, signal }),
    shell: { workspaceDir: handOver.workspaceDir, env, groups, signal },
    emit: (event) => events.emit(event),
    secrets,
    log,
  });
  const output = new ProgramOutput({
    secrets,
    emit: (event) => events.emit(event),
    room: () => events.room(),
  });
  const server = new HostServer({
    socketDir: handOver.hostSocketDir,
    onRequest: (method, params) => capabilities.request(method, params),
    onNotification: (method, params) =>
      method === CONSOLE_METHOD ? printed(output, params) : capabilities.notification(method, params),
    log,
  });
  return { server, output, capabilities };
}

/** A console call of the loader; anything else on this private method is ignored. */
async function printed(output: ProgramOutput, params: unknown): Promise<void> {
  if (!isRecord(params)) return;
  const { stream, text, cut } = params;
  if ((stream !== 'stdout' && stream !== 'stderr') || typeof text !== 'string') return;
  await output.console(stream, text, cut === true);
}

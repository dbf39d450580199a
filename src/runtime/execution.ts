// The middle of a run: host, program, meters (protocol/run-control.md 3, steps 6 and 10 to 14). It guards that whatever
// was opened for the program is closed again, and that everything the program spent is reported before the finalize.

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
import { CONSOLE_METHOD } from './consoleLimits.js';
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
  const secretCalls = new Secrets({ control, known: secrets, signal: stop.signal });
  const env = programEnvironment(run.env, await secretCalls.environment(manifest.env));
  const { maxUsd, maxTokens, maxComputeSeconds } = manifest.budget;
  const budget = new Budget({ usd: maxUsd, tokens: maxTokens, compute: maxComputeSeconds }, elapsedMs);
  const usage = new UsageReports({ runId: handOver.runId, vcpus: handOver.vcpus, control, log, elapsedMs });
  const report = new ProgramReport();
  const host = buildHost(run, { secretCalls, env, budget, usage, report });
  const socketPath = await host.server.start().catch((cause: unknown) => {
    throw new RunFailure('HOST_BUILD_FAILED', cause instanceof Error ? cause.message : String(cause), {
      cause,
    });
  });
  usage.start();
  try {
    const end = await runProgram({
      nodePath: handOver.nodePath,
      sdkDir: handOver.sdkDir,
      entryPath,
      cwd: handOver.workspaceDir,
      env,
      socketPath,
      stopGraceMs: handOver.stopGraceMs,
      host: host.server,
      report,
      output: host.output,
      groups: run.groups,
      onStop: (listener) => stop.onStop(listener),
    });
    if (end.kind === 'failed') return { kind: 'failed', error: curate(end.thrown, secrets) };
    const { value } = end;
    // null makes no row.
    if (stop.reason === undefined && value !== null && value !== undefined) {
      run.events.emit({ kind: 'output', value: redactDeep(value, secrets) ?? null });
    }
    return { kind: 'completed', value };
  } finally {
    await host.server.stop();
    await usage.finish();
  }
}

interface HostParts {
  readonly secretCalls: Secrets;
  readonly env: Readonly<Record<string, string>>;
  readonly budget: Budget;
  readonly usage: UsageReports;
  readonly report: ProgramReport;
}

function buildHost(
  run: RunningRun,
  parts: HostParts,
): { readonly server: HostServer; readonly output: ProgramOutput } {
  const { handOver, claim, manifest, control, events, secrets, stop, groups, log } = run;
  const { budget, usage, env } = parts;
  const { signal } = stop;
  const capabilities = new Capabilities({
    ...parts,
    input: programInput(effectiveInput(claim.run), manifest.inputSchema),
    inputSchema: manifest.inputSchema,
    context: programContext(claim, handOver.workspaceDir),
    agents: new Agents({ control, events, secrets, budget, usage, signal }),
    shell: { workspaceDir: handOver.workspaceDir, env, groups, signal },
    emit: (event) => events.emit(event),
    secrets,
    signal,
    log,
  });
  const output = new ProgramOutput({
    secrets,
    emit: (event) => events.emit(event),
    room: () => events.room(),
  });
  const server = new HostServer({
    tmpDir: handOver.tmpDir,
    onRequest: (method, params) => capabilities.request(method, params),
    onNotification: (method, params) =>
      method === CONSOLE_METHOD ? printed(output, params) : capabilities.notification(method, params),
    log,
  });
  return { server, output };
}

/** A console call of the loader; anything else on this private method is ignored. */
async function printed(output: ProgramOutput, params: unknown): Promise<void> {
  if (!isRecord(params)) return;
  const { stream, text, cut } = params;
  if ((stream !== 'stdout' && stream !== 'stderr') || typeof text !== 'string') return;
  await output.console(stream, text, cut === true);
}

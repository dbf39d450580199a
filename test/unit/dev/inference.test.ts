import { AGENT_HEADER } from '../../../src/contract/fleetCalls.js';
import { describe, expect, it } from 'vitest';
import { type InferenceFrame, readFrames } from '../../../src/contract/inference.js';
import { startPlane, type TestWork } from './planeWorld.js';

interface Call {
  readonly prompt: string;
  readonly agentName?: string | null;
  readonly signal?: AbortSignal;
}

async function ask(work: TestWork, { prompt, agentName, signal }: Call): Promise<Response> {
  const { base_url, run_token } = work.assignment.control_plane;
  return fetch(`${base_url}/runner/v1/runs/${work.runId}/inference`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${run_token}`,
      accept: 'application/x-ndjson',
      ...(agentName === undefined ? {} : { [AGENT_HEADER]: agentName ?? '' }),
    },
    body: JSON.stringify({ messages: [{ role: 'user', content: prompt }], tools: [] }),
    ...(signal === undefined ? {} : { signal }),
  });
}

async function framesOf(response: Response): Promise<InferenceFrame[]> {
  const frames: InferenceFrame[] = [];
  if (response.body !== null) for await (const frame of readFrames(response.body)) frames.push(frame);
  return frames;
}

async function textOf(work: TestWork, call: Call): Promise<string> {
  const last = (await framesOf(await ask(work, call))).at(-1);
  return last?.kind === 'result' ? last.turn.text : `no result: ${last?.kind ?? 'nothing'}`;
}

describe('a model call', () => {
  it('plays its entry as frames, and is charged once', async () => {
    const world = await startPlane();
    const steps = [
      { ping: 2 },
      { reasoning: 'hm' },
      { text: 'wrong' },
      'reset',
      { wait_ms: 1 },
      { text: 'right ' },
      { text: 'so' },
      { tool: { name: 'read', input: { path: 'a' } } },
    ];
    const usage = { inputTokens: 412, outputTokens: 9 };
    const work = await world.work({ script: [{ steps, usage, costMicros: 830 }] });
    const response = await ask(work, { prompt: 'go' });
    expect(response.status).toBe(200);
    expect(await framesOf(response)).toEqual([
      { kind: 'ping' },
      { kind: 'ping' },
      { kind: 'reasoning', text: 'hm' },
      { kind: 'delta', text: 'wrong' },
      { kind: 'reset' },
      { kind: 'delta', text: 'right ' },
      { kind: 'delta', text: 'so' },
      {
        kind: 'result',
        turn: {
          text: 'right so',
          toolCalls: [{ id: 'call_1', name: 'read', input: { path: 'a' } }],
          usage,
          wantsTools: true,
        },
        modelRef: 'local/scripted',
        costMicros: 830,
        contextTokens: 200_000,
      },
    ]);
    expect((await world.view(work.runId)).usage).toMatchObject({ model_calls: 1, cost_micros: 830 });
  });

  it('breaks, fails or is refused where the script says so, uncharged', async () => {
    const world = await startPlane();
    const script = [
      { match: 'break', steps: [{ text: 'half' }, 'drop'], costMicros: 5 },
      { match: 'fail', steps: [{ error: { code: 'RATE_LIMITED', message: 'slow down' } }] },
      { match: 'refuse', steps: [{ wait_ms: 1 }, { status: 503 }] },
    ];
    const work = await world.work({ script });
    await expect(framesOf(await ask(work, { prompt: 'break' }))).rejects.toThrow();
    const error = { code: 'RATE_LIMITED', message: 'slow down' };
    expect(await framesOf(await ask(work, { prompt: 'fail' }))).toEqual([{ kind: 'error', error }]);
    expect((await ask(work, { prompt: 'refuse' })).status).toBe(503);
    expect((await world.view(work.runId)).usage).toMatchObject({ model_calls: 0, cost_micros: 0 });
  });

  it('without a script says something sensible, in several deltas, after thinking', async () => {
    const world = await startPlane();
    const work = await world.work();
    const frames = await framesOf(await ask(work, { prompt: '<env>\nToday\n</env>\n\nGreet Ada.' }));
    expect(frames.filter(({ kind }) => kind === 'reasoning').length).toBeGreaterThan(1);
    const deltas = frames.flatMap((frame) => (frame.kind === 'delta' ? [frame.text] : []));
    expect(deltas.length).toBeGreaterThan(2);
    expect(deltas.join('')).toContain('Greet Ada.');
    expect(frames.at(-1)).toMatchObject({ kind: 'result', turn: { text: deltas.join('') } });
  });

  it('gives each of many parallel agents its own entry', async () => {
    const world = await startPlane();
    const names = Array.from({ length: 12 }, (_, n) => `agent-${n}`);
    const script = [
      ...names.map((agent) => ({ agent, steps: [{ wait_ms: 2 }, { text: `for ${agent}` }] })),
      { match: '/^city: \\w+$/i', steps: [{ text: 'by pattern' }] },
    ];
    const work = await world.work({ script });
    const calls = [...names].reverse().map((agentName) => textOf(work, { prompt: 'same', agentName }));
    expect(await Promise.all(calls)).toEqual([...names].reverse().map((name) => `for ${name}`));
    expect(await textOf(work, { prompt: 'City: Oslo', agentName: null })).toBe('by pattern');
  });

  it('ends when the client hangs up, and with the control plane', async () => {
    const world = await startPlane();
    const script = [1, 2].map((n) => ({ steps: [{ text: `n${n}` }, { wait_ms: 3_600_000 }] }));
    const work = await world.work({ script });
    const hangUp = new AbortController();
    const reader = (await ask(work, { prompt: 'x', signal: hangUp.signal })).body?.getReader();
    await reader?.read();
    hangUp.abort();
    const second = (await ask(work, { prompt: 'x' })).body?.getReader();
    await second?.read();
    await world.plane.stop();
    await expect(second?.read()).rejects.toThrow();
    expect(world.plane.run(work.runId).usage.model_calls).toBe(0);
  });

  it('starts its script anew with each attempt', async () => {
    const world = await startPlane({ leaseMs: 1_200 });
    const work = await world.work({ script: [{ steps: [{ text: 'scripted' }] }] });
    expect(await textOf(work, { prompt: 'x' })).toBe('scripted');
    expect(await textOf(work, { prompt: 'x' })).toContain('No entry of the script is left');
    const next = await (await world.runner()).take();
    await next.claim();
    expect(await textOf(next, { prompt: 'x' })).toBe('scripted');
  });

  it('refuses a body that is no conversation', async () => {
    const world = await startPlane();
    const work = await world.work();
    expect((await work.call('POST', 'inference', { tools: [] })).status).toBe(400);
    const odd = { messages: [7, null, { role: 'user' }], tools: [], reasoning: 1 };
    const { base_url, run_token } = work.assignment.control_plane;
    const response = await fetch(`${base_url}/runner/v1/runs/${work.runId}/inference`, {
      method: 'POST',
      headers: { authorization: `Bearer ${run_token}` },
      body: JSON.stringify(odd),
    });
    expect((await framesOf(response)).at(-1)?.kind).toBe('result');
  });
});

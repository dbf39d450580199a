// A run as it should be: an agent whose model starts over, phases, prints, shell, secrets, output, finalize.

import { describe, expect, test } from 'vitest';
import { runEventSchema } from '../../../src/contract/events.js';
import { RunFold } from '../../../src/contract/fold.js';
import { eventsOf, finishedRun, startRun } from './world.js';

const matching = (pattern: RegExp): unknown => expect.stringMatching(pattern);

const SECRET = 'hunter2-is-no-password';

const HELLO = `
import { agent, parallel, phase, secrets, shell, sleep, usage } from '@boardwalk-labs/workflow';
export default async function run(input, context) {
  phase('Greet');
  console.log('hello %s', input.name, { n: 1 });
  process.stdout.write('raw ');
  process.stdout.write('line\\nsecond\\n');
  console.error('to stderr');
  const secret = await secrets.get('TOKEN');
  console.log('the secret is ' + secret);
  process.stderr.write(secret.slice(0, 5)); process.stderr.write(secret.slice(5) + '\\n');
  const text = await agent('Say hello to ' + secret, { name: 'greeter', model: 'maple-7b', reasoning: 'low', builtins: 'none' });
  await sleep('1ms');
  const { stdout, exitCode } = await shell('printf "%s" "$FROM_SECRET" | wc -c; exit 3');
  const settled = await parallel([() => 1, () => { throw new Error('no'); }]);
  return { text, stdout: stdout.trim(), exitCode, settled, attempt: context.attempt, dir: context.workspaceDir === process.cwd(),
    spent: (await usage.get()).tokens.spent, leaked: Object.keys(process.env).filter((key) => /RUN_ID|HOST_SOCK/.test(key)),
    when: new Date(0), big: 7n };
}`;

const RESULT = {
  t: 'result',
  turn: {
    text: 'Hello there.',
    toolCalls: [],
    usage: { inputTokens: 12, outputTokens: 3 },
    wantsTools: false,
  },
  modelRef: 'office/maple-7b',
  costMicros: 830,
};

const MODEL = [
  { t: 'ping' },
  { t: 'reasoning', text: 'Greet.' },
  { t: 'delta', text: 'Hi, I am wr' },
  { t: 'reset' },
  { t: 'delta', text: 'Hello ' },
  { t: 'delta', text: 'there.' },
  RESULT,
];

async function helloRun(
  world: Partial<Parameters<typeof finishedRun>[0]> = {},
): ReturnType<typeof finishedRun> {
  return finishedRun({
    source: HELLO,
    run: { input: { name: 'Ada' }, attempt: 2 },
    models: [MODEL],
    secrets: { TOKEN: SECRET },
    manifest: { env: { FROM_SECRET: '${{ secrets.TOKEN }}', PLAIN: 'x' } },
    env: { BOARDWALK_BYO_PROVIDERS: '[]' },
    ...world,
  });
}

describe('a run that goes well', () => {
  test('ends finalized as completed with the canonically encoded value, and leaves nothing behind', async () => {
    const { code, gateway, stderr, leftovers } = await helloRun();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(gateway.finalizes).toEqual([
      {
        status: 'completed',
        workerId: 'rnr_1/asg_1',
        output: {
          text: 'Hello there.',
          stdout: String(SECRET.length),
          exitCode: 3,
          settled: [1, null],
          attempt: 2,
          dir: true,
          spent: 15,
          leaked: [],
          when: '1970-01-01T00:00:00.000Z',
          big: '7',
        },
      },
    ]);
    expect(leftovers).toEqual([]);
  });

  test('every row is a strict event, cursors rise, and the agent turn has a block of its own', async () => {
    const { gateway } = await helloRun();
    for (const row of gateway.rows) expect(runEventSchema.safeParse(row.event).error).toBeUndefined();
    const cursors = gateway.rows.map((row) => row.cursor);
    expect(cursors).toEqual([...new Set(cursors)].sort((a, b) => a - b));
    expect(gateway.rows[0]).toMatchObject({
      cursor: 1,
      event: { kind: 'run_status', status: 'running', turnId: 'run_test' },
    });
    const started = gateway.rows.find((row) => row.event.kind === 'turn_started');
    expect(started).toMatchObject({
      cursor: 1_000_001,
      event: { seq: 1, agentId: 'agent-1', agentName: 'greeter' },
    });
  });

  test('a second attempt numbers its rows in a block above everything stored', async () => {
    const { gateway } = await helloRun({ lastEventCursor: 4_000_017 });
    expect(gateway.rows[0]?.cursor).toBe(5_000_001);
  });

  test('a reset frame is one turn_reset on the turn that streams, and the fold shows only what is valid', async () => {
    const { gateway } = await helloRun();
    const turnId = eventsOf(gateway, 'turn_started')[0]?.turnId ?? '';
    const kinds = gateway.rows.filter((row) => row.event.turnId === turnId).map((row) => row.event.kind);
    expect(kinds).toEqual([
      'turn_started',
      'reasoning_delta',
      'text_start',
      'text_delta',
      'turn_reset',
      'text_delta',
      'text_delta',
      'text_end',
      'turn_ended',
    ]);
    const fold = new RunFold();
    for (const row of gateway.rows) fold.apply(row);
    expect(JSON.stringify([...fold.turns.values()])).not.toContain('I am wr');
    expect(eventsOf(gateway, 'turn_ended')[0]).toMatchObject({
      reason: 'complete',
      usage: { inputTokens: 12, outputTokens: 3 },
    });
  });

  test('prints are rows in the order of the program, one a console call and one a raw line', async () => {
    const { gateway } = await helloRun();
    const printed = eventsOf(gateway, 'program_output');
    const calls = printed.filter((event) => /hello|to stderr|parallel|the secret/.test(event.text));
    expect(calls.map((event) => `${event.stream}: ${event.text}`)).toEqual([
      'stdout: hello Ada { n: 1 }',
      'stderr: to stderr',
      'stdout: the secret is [REDACTED]',
      'stderr: parallel: task 1 failed: no',
    ]);
    expect(printed.filter((event) => event.stream === 'stdout').map((event) => event.text)).toEqual(
      expect.arrayContaining(['raw line', 'second']),
    );
    const kinds = gateway.rows.map((row) => row.event.kind);
    expect(kinds.indexOf('phase')).toBeLessThan(kinds.indexOf('program_output'));
  });

  test('a secret is in no row, no model call and no error, also when it is written in two pieces (R16)', async () => {
    const { gateway } = await helloRun();
    expect(JSON.stringify(gateway.rows)).not.toContain(SECRET);
    expect(JSON.stringify(gateway.bodiesOf('inference'))).not.toContain(SECRET);
    expect(eventsOf(gateway, 'program_output').map((event) => event.text)).toContain('[REDACTED]');
  });

  test('a secret that the model splits over two deltas never becomes a row (R16)', async () => {
    const { gateway } = await helloRun({
      models: [
        [
          { t: 'delta', text: `It is ${SECRET.slice(0, 7)}` },
          { t: 'delta', text: `${SECRET.slice(7)}!` },
          RESULT,
        ],
      ],
    });
    const shown = eventsOf(gateway, 'text_delta').map((event) => event.text);
    expect(shown.join('')).toBe('It is [REDACTED]!');
    expect(shown.some((text) => text.includes('hunter'))).toBe(false);
  });

  test('the model call carries prompt, options and no tools; tokens and compute are reported before the finalize (R18)', async () => {
    const { gateway } = await helloRun();
    expect(gateway.bodiesOf('inference')[0]).toEqual({
      model: 'maple-7b',
      messages: [
        {
          role: 'user',
          content: matching(
            /^<env>\nToday is \w+day, [\d-]+ \(UTC\)\.\n<\/env>\n\nSay hello to \[REDACTED\]$/,
          ),
        },
      ],
      tools: [],
      reasoning: { effort: 'low' },
    });
    expect(gateway.bodiesOf('usage/tokens')).toEqual([
      {
        inputTokens: 12,
        outputTokens: 3,
        model: 'office/maple-7b',
        identifier: matching(/^run_test:[0-9a-f-]{36}:1:0$/),
      },
    ]);
    const paths = gateway.calls.map((call) => call.path);
    expect(paths.at(-1)).toBe('finalize');
    expect(paths.lastIndexOf('telemetry')).toBeLessThan(paths.indexOf('finalize'));
  });

  test('rows that the gateway fails to take are sent again until it does, and none is lost (R7, R17)', async () => {
    let failures = 0;
    const run = await startRun({
      source: `export default async () => { for (let i = 0; i < 50; i += 1) console.log('line ' + i); return 'done'; }`,
      answers: {
        telemetry: (body, res, gateway) => {
          failures += 1;
          if (failures <= 2) res.writeHead(500).end();
          else gateway.take(body, res);
        },
      },
    });
    await run.exited;
    const lines = eventsOf(run.gateway, 'program_output').map((event) => event.text);
    await run.dispose();
    expect(lines).toEqual(Array.from({ length: 50 }, (_, index) => `line ${index}`));
    expect(run.gateway.finalizes).toHaveLength(1);
  });

  test('a finalize that is answered 500 is sent again (R19)', async () => {
    let answers = 0;
    const { code, gateway } = await finishedRun({
      answers: {
        finalize: (_body, res) => {
          answers += 1;
          res.writeHead(answers === 1 ? 500 : 204).end();
        },
      },
    });
    expect(code).toBe(0);
    expect(gateway.bodiesOf('finalize')).toHaveLength(2);
  });
});

// The program-to-host protocol, exactly (protocol/sdk.md 3-5): frames, and params and result of every method. It guards
// against a host that says other things than were agreed: the runtime takes its types from here, and tests hold what it
// sends against the schemas. They are strict, as the strictest peer is; at run time nobody loads them, because the
// runtime boots without a validation library. It reads frames with `hostFrames.ts`, and params tolerantly, by name.

import { z } from 'zod';
import { agentOptionsSchema, programContextSchema, usageSnapshotSchema } from './hostPayloads.js';
import { humanInputOptionsSchema, humanInputResultSchema } from './humanInput.js';

const id = z.union([z.int(), z.string().min(1)]);
const version = z.literal('2.0');
const filled = z.string().min(1);
const text = z.string();
const count = z.int().min(0);

const requestFrameSchema = z.strictObject({
  jsonrpc: version,
  id,
  method: filled,
  params: z.unknown().optional(),
});
const notificationFrameSchema = requestFrameSchema.omit({ id: true });
const successFrameSchema = z.strictObject({ jsonrpc: version, id, result: present() });
const errorFrameSchema = z.strictObject({
  jsonrpc: version,
  id: id.nullable(),
  error: z.strictObject({ code: filled, message: text, data: z.unknown().optional() }),
});

/** In the order in which a frame is classified. */
export const hostFrameSchema = z.union([
  errorFrameSchema,
  requestFrameSchema,
  successFrameSchema,
  notificationFrameSchema,
]);

const none = z.strictObject({});
const jsonSchema = z.record(z.string(), z.unknown()).nullable();
const session = z.strictObject({ sessionId: filled });
const artifact = z.strictObject({ ref: z.strictObject({ id: filled, name: filled, url: filled }) });
const token = z.strictObject({ token: filled });
const child = z.strictObject({
  slug: filled,
  input: present(),
  opts: z.strictObject({ idempotencyKey: text.optional() }).optional(),
});
const scheduleOptions = z.strictObject({
  cron: text.optional(),
  rate: text.optional(),
  at: text.optional(),
  timezone: text.optional(),
  idempotencyKey: text.optional(),
});
const since = z.strictObject({ sessionId: filled, since: z.number().optional() });
const entries = <T extends z.ZodType>(entry: T) => z.strictObject({ entries: z.array(entry) });

/** Requests of the program. */
export const clientMethods = {
  bootstrap: {
    params: none,
    result: z.strictObject({ input: present(), input_schema: jsonSchema, context: programContextSchema }),
  },
  report_return: { params: z.strictObject({ value: present() }), result: none },
  agent: {
    params: z.strictObject({ prompt: text, opts: agentOptionsSchema.optional() }),
    result: z.strictObject({ output: present() }),
  },
  'workflows.call': {
    params: child,
    result: z.strictObject({ output: present(), output_schema: jsonSchema }),
  },
  'workflows.run': { params: child, result: z.strictObject({ runId: filled }) },
  'workflows.schedule': {
    params: z.strictObject({ slug: filled, input: present(), opts: scheduleOptions }),
    result: z.strictObject({ scheduleId: filled }),
  },
  sleep: {
    params: z.strictObject({
      arg: z.union([
        z.number().min(0),
        z.strictObject({ durationMs: z.number().min(0) }),
        z.strictObject({ until: filled }),
      ]),
    }),
    result: none,
  },
  humanInput: {
    params: z.strictObject({ opts: humanInputOptionsSchema }),
    result: z.strictObject({ result: humanInputResultSchema }),
  },
  'secrets.get': { params: z.strictObject({ name: filled }), result: z.strictObject({ value: text }) },
  'artifacts.write': {
    params: z.strictObject({
      name: filled,
      contentType: filled,
      body: z.strictObject({ encoding: z.enum(['utf8', 'base64']), data: text }),
      metadata: z.record(z.string(), z.unknown()).optional(),
    }),
    result: artifact,
  },
  shell: {
    params: z.strictObject({
      cmd: filled,
      opts: z
        .strictObject({
          cwd: text.optional(),
          env: z.record(z.string(), z.string()).optional(),
          timeoutMs: z.number().optional(),
          maxBuffer: z.number().optional(),
        })
        .optional(),
    }),
    result: z.strictObject({ exitCode: z.int(), stdout: text, stderr: text }),
  },
  'auth.idToken': { params: z.strictObject({ audience: filled }), result: token },
  'auth.apiToken': { params: none, result: token },
  'usage.get': { params: none, result: usageSnapshotSchema },
  'computer.openBrowser': {
    params: z.strictObject({
      opts: z
        .strictObject({
          startUrl: text.optional(),
          viewport: z.strictObject({ width: z.int().min(1), height: z.int().min(1) }).optional(),
          grounding: z.enum(['auto', 'a11y', 'vision', 'none']).optional(),
        })
        .optional(),
    }),
    result: session,
  },
  'computer.browser.navigate': { params: z.strictObject({ sessionId: filled, url: text }), result: none },
  'computer.browser.url': { params: session, result: z.strictObject({ url: text }) },
  'computer.browser.title': { params: session, result: z.strictObject({ title: text }) },
  'computer.browser.screenshot': {
    params: z.strictObject({ sessionId: filled, fullPage: z.boolean().optional() }),
    result: artifact,
  },
  'computer.browser.console': {
    params: since,
    result: entries(
      z.strictObject({
        level: z.enum(['log', 'info', 'warn', 'error', 'debug']),
        text,
        timestamp: z.number(),
      }),
    ),
  },
  'computer.browser.network': {
    params: since,
    result: entries(
      z.strictObject({ method: text, url: text, status: count.optional(), timestamp: z.number() }),
    ),
  },
  'computer.browser.eval': {
    params: z.strictObject({ sessionId: filled, expression: text }),
    result: z.strictObject({ value: present() }),
  },
  'computer.browser.close': { params: session, result: none },
  'computer.openDesktop': {
    params: z.strictObject({
      opts: z.strictObject({ grounding: z.enum(['auto', 'none']).optional() }).optional(),
    }),
    result: session,
  },
  'computer.desktop.screenshot': { params: session, result: artifact },
  'computer.desktop.close': { params: session, result: none },
} as const satisfies Record<string, Method>;

/** Notifications of the program. */
export const clientNotifications = {
  phase: {
    params: z.strictObject({ name: filled, opts: z.strictObject({ id: filled.optional() }).optional() }),
  },
} as const;

/** Requests of the host. */
export const hostMethods = {
  tool_invoke: {
    params: z.strictObject({ call_id: filled, tool: filled, input: present() }),
    result: z.strictObject({ output: present() }),
  },
} as const satisfies Record<string, Method>;

/** Notifications of the host. */
export const hostNotifications = {
  cancel: { params: z.strictObject({ reason: filled.optional() }) },
} as const;

/** A request that a program may make of its host. */
export type ClientMethod = keyof typeof clientMethods;

interface Method {
  readonly params: z.ZodType;
  readonly result: z.ZodType;
}

/** Any JSON, but it must be there. */
function present() {
  return z.unknown().refine((value) => value !== undefined, 'is missing');
}

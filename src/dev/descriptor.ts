// Is this descriptor one that a platform would take? (protocol/program.md 4) The runtime is tolerant, because a run must
// not fail for a key that it doesn't need; whoever writes the file wants to hear of a mistake before there is a run. So
// this is as strict as a deploy tool, but for keys that it doesn't know: a newer platform may, and they are warned about.

import { z } from 'zod';
import { isRelativePath, secretReference } from '../contract/manifest.js';

const text = (least: number, most: number): z.ZodString =>
  z
    .string(`must be a text of ${least} to ${most} characters`)
    .min(least, `must be a text of ${least} to ${most} characters`)
    .max(most, `must be at most ${most} characters`);
const oneOf = <const Word extends string>(...words: readonly Word[]): z.ZodType<Word> =>
  z.enum(words, `must be one of ${words.join(', ')}`);
const list = <T extends z.ZodType>(of: T, least: number, most: number): z.ZodArray<T> =>
  z
    .array(of, 'must be a list')
    .min(least, `must have at least ${least} entries`)
    .max(most, `must have at most ${most} entries`);
const atLeastOne = z.int('must be a whole number above 0').min(1, 'must be a whole number above 0');
const truth = z.boolean('must be true or false');

const SLUG = /^[A-Za-z0-9-]+$/;
const slug = text(1, 100).regex(SLUG, 'must be letters, digits and dashes');
const path = text(1, 512).refine(isRelativePath, 'must be a path inside the folder, without . and .. in it');

const trigger = z.discriminatedUnion(
  'kind',
  [
    z.strictObject({ kind: z.literal('manual') }),
    z.strictObject({
      kind: z.literal('cron'),
      expr: text(1, 120).refine(
        (expr) => [5, 6].includes(expr.trim().split(/\s+/).length),
        'must have 5 or 6 fields, like "0 4 * * *"',
      ),
      timezone: text(1, 120).optional(),
      input: z.record(z.string(), z.unknown(), 'must be an object').optional(),
    }),
    z.strictObject({
      kind: z.literal('webhook'),
      name: slug,
      auth: oneOf('token', 'signature').optional(),
    }),
    z.strictObject({
      kind: z.literal('workflow_run'),
      workflows: list(slug, 1, 20),
      conclusions: list(oneOf('success', 'failure', 'cancelled'), 1, 3).optional(),
    }),
    z.strictObject({
      kind: z.literal('github'),
      event: oneOf('pr.opened', 'pr.merged', 'issue.opened', 'issue.commented', 'ci.completed'),
      repos: list(text(3, 200).regex(/^[\w.-]+\/[\w.-]+$/, 'must be owner/name'), 1, 50).optional(),
    }),
    z.strictObject({
      kind: z.enum(['linear', 'jira']),
      event: oneOf('issue.created', 'issue.status_changed', 'issue.commented'),
    }),
    z.strictObject({
      kind: z.literal('notion'),
      event: oneOf('page.created', 'page.updated', 'comment.created'),
    }),
  ],
  'must have a kind: manual, cron, webhook, workflow_run, github, linear, jira or notion',
);

/** protocol/program.md 4.2 */
const LABELS = ['boardwalk/linux', 'boardwalk/linux-node', 'boardwalk/linux-python'] as const;
const SECRETS_FORM = 'must be a list of names as objects: [{"name": "API_KEY"}]';
const grant = oneOf('none', 'read', 'write').optional();

const descriptorSchema = z.strictObject(
  {
    slug,
    title: text(1, 200)
      .regex(/^[^\n]*$/, 'must be one line')
      .optional(),
    description: text(0, 1_000).optional(),
    entry: path.optional(),
    triggers: list(trigger, 1, 100),
    env: z
      .record(text(1, 120), text(0, 32_768), 'must be an object of texts')
      .superRefine((env, context) => {
        if (Object.keys(env).length > 100)
          context.addIssue({ code: 'custom', message: 'must have at most 100 entries' });
        for (const [name, value] of Object.entries(env))
          if (value.includes('${{') && secretReference(value) === null)
            context.addIssue({
              code: 'custom',
              path: [name],
              message: 'must be plain text or exactly one secret, like ${{ secrets.API_KEY }}',
            });
      })
      .optional(),
    workspace: z
      .strictObject(
        {
          persist: z.union([truth, list(path, 1, 50)], 'must be true, false or a list of paths').optional(),
          key: text(1, 200).optional(),
        },
        'must be an object',
      )
      .optional(),
    recording: truth.optional(),
    budget: z
      .strictObject(
        {
          max_tokens: atLeastOne.optional(),
          max_usd: z.number('must be a number above 0').gt(0, 'must be a number above 0').optional(),
          max_compute_seconds: atLeastOne.optional(),
        },
        'must be an object',
      )
      .optional(),
    concurrency: z
      .discriminatedUnion(
        'mode',
        [
          z.strictObject({ mode: z.literal('unlimited') }),
          z.strictObject({ mode: z.enum(['serial', 'latest_wins']), key: text(1, 200).optional() }),
          z.strictObject({ mode: z.literal('serial_by_key'), key: text(1, 200) }),
        ],
        'must be an object with a mode: unlimited, serial or latest_wins',
      )
      .optional(),
    runs_on: z
      .union(
        [
          z.enum(LABELS),
          z.strictObject({
            kind: z.literal('self-hosted'),
            pool: text(1, 120).optional(),
            labels: list(text(1, 120), 0, 32).optional(),
          }),
          z.strictObject({
            label: z.enum(LABELS),
            size: oneOf('small', 'medium', 'large', 'xlarge').optional(),
          }),
        ],
        `must be one of ${LABELS.join(', ')}, or {"kind": "self-hosted", "pool": "default"}`,
      )
      .optional(),
    container: z.strictObject({ image: text(1, 512) }, 'must be an object').optional(),
    permissions: z
      .strictObject(
        {
          id_token: oneOf('none', 'write').optional(),
          artifacts: grant,
          contents: grant,
          secrets: z.array(z.strictObject({ name: text(1, 120) }, SECRETS_FORM), SECRETS_FORM).optional(),
        },
        'must be an object, like {"secrets": [{"name": "API_KEY"}]}',
      )
      .optional(),
    callable_by: z
      .union(
        [
          z.enum(['anyone_in_org', 'users_only', 'workflows_only']),
          z.strictObject({ roles: list(text(1, 200), 1, 100) }),
          z.strictObject({ workflows: list(text(1, 200), 1, 100) }),
        ],
        'must be anyone_in_org, users_only, workflows_only, {"roles": […]} or {"workflows": […]}',
      )
      .optional(),
    egress: z
      .discriminatedUnion(
        'level',
        [
          z.strictObject({ level: z.enum(['none', 'full']) }),
          z.strictObject({ level: z.literal('custom'), allow: list(text(1, 256), 1, 1_000) }),
        ],
        'must be an object with a level: none, full or custom',
      )
      .optional(),
    notifications: z
      .array(
        z
          .strictObject(
            {
              on: oneOf('completion', 'failure', 'cancelled', 'budget_exceeded'),
              channel: oneOf('email', 'webhook'),
              target: text(1, 2_048),
              template: text(0, 10_000).optional(),
            },
            'must be an object with on, channel and target',
          )
          .refine(
            ({ on, channel }) => on !== 'budget_exceeded' || channel === 'email',
            'budget_exceeded is sent by email only',
          ),
        'must be a list',
      )
      .optional(),
    files: list(path, 1, 100).optional(),
  },
  'must be an object',
);

export interface DescriptorRead {
  /** What a platform would refuse; the first is enough to say. */
  readonly problems: readonly string[];
  /** Keys that we don't know. */
  readonly warnings: readonly string[];
}

/** Each as `field: what is wrong with it`. */
export function checkDescriptor(descriptor: unknown): DescriptorRead {
  const read = descriptorSchema.safeParse(descriptor, { reportInput: true });
  const problems: string[] = [];
  const warnings: string[] = [];
  for (const issue of read.error?.issues ?? []) {
    const where = placeOf(issue.path);
    if (issue.code !== 'unrecognized_keys') problems.push(`${where}: ${wordsOf(issue)}`);
    else
      for (const key of issue.keys) {
        const name = placeOf([...issue.path, key]);
        // What people write who look for a place for their secrets must not pass as somebody else's key.
        if (name === 'secrets')
          problems.push('secrets: belongs below permissions: {"secrets": [{"name": "API_KEY"}]}');
        else warnings.push(`${name}: no such field is known; it is ignored`);
      }
  }
  return { problems, warnings };
}

function wordsOf(issue: z.core.$ZodIssue): string {
  return issue.input === undefined && issue.code === 'invalid_type' && issue.message.startsWith('must be')
    ? `is missing; it ${issue.message}`
    : issue.message;
}

function placeOf(path: readonly PropertyKey[]): string {
  return path
    .map((step, index) =>
      typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${String(step)}`,
    )
    .join('');
}

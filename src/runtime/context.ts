// What a program is told about its run (protocol/program.md 5, 6): input and context, built from the claim. The SDKs
// check the context strictly, so nothing is in it that they don't know.

import type { ProgramContext } from '../contract/hostPayloads.js';
import type { UnknownRecord } from '../contract/json.js';
import type { Actor, RunClaim } from '../contract/runControl.js';

/** An actor of a type that came later than this version is passed on as the control plane told it. */
export type BootContext = Omit<ProgramContext, 'actor'> & { readonly actor: Actor };

export function programContext(
  { run, workflowVersion, environment }: RunClaim,
  workspaceDir: string,
): BootContext {
  const source = sourceOf(run.actor);
  return {
    runId: run.id,
    workflowId: run.workflowId,
    workflowVersion,
    orgId: run.orgId,
    environment,
    actor: run.actor,
    attempt: run.attempt,
    trigger: {
      kind: run.triggerKind,
      firedAt: run.createdAt,
      ...(source === undefined ? {} : { source }),
      ...(run.triggerRequest === null ? {} : { request: run.triggerRequest }),
    },
    workspaceDir,
  };
}

/**
 * No input becomes `{}` where the schema refuses null and accepts `{}`, else null. Without a schema validator only the
 * plain case is told: an object without required members, which is what derived schemas look like.
 */
export function programInput(given: unknown, schema: UnknownRecord | null): unknown {
  if (given !== null && given !== undefined) return given;
  return schema !== null && acceptsOnlyObjects(schema) && acceptsEmptyObject(schema) ? {} : null;
}

function acceptsOnlyObjects(schema: UnknownRecord): boolean {
  return schema['type'] === 'object';
}

function acceptsEmptyObject(schema: UnknownRecord): boolean {
  const { required, minProperties } = schema;
  const combined = ['$ref', 'allOf', 'anyOf', 'oneOf', 'not', 'if', 'enum', 'const'].some(
    (keyword) => keyword in schema,
  );
  return (
    !combined &&
    !(Array.isArray(required) && required.length > 0) &&
    !(typeof minProperties === 'number' && minProperties > 0)
  );
}

/** protocol/program.md 6: webhook source, cron rule, or event subscription id. */
function sourceOf(actor: Actor): string | undefined {
  const field = Object.hasOwn(SOURCE_FIELDS, actor.type) ? SOURCE_FIELDS[actor.type] : undefined;
  const source = field === undefined ? undefined : actor[field];
  return typeof source === 'string' ? source : undefined;
}

const SOURCE_FIELDS: Readonly<Record<string, string>> = {
  webhook: 'source',
  cron: 'rule',
  event: 'subscription_id',
};

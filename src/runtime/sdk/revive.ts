// Schema-guided revival: JSON that came in becomes the dates, big integers, bytes and sets that the program's types
// promise (protocol/sdk.md 6.2). It never throws, because a value that doesn't fit its schema must still arrive.

type Schema = Readonly<Record<string, unknown>>;

/** protocol/sdk.md 6.2. */
const MAX_REF_HOPS = 16;
const BIGINT_PATTERN = '^-?\\d+$';

/** `schema` null, missing or `{}` passes everything through. */
export function reviveValue(value: unknown, schema: unknown): unknown {
  return isObject(schema) ? revive(value, schema, schema) : value;
}

function revive(value: unknown, schema: Schema, root: Schema): unknown {
  if (value === null || value === undefined) return value;
  const resolved = resolveReferences(schema, root);
  if (resolved === undefined) return value;
  const alternatives = resolved['anyOf'];
  if (Array.isArray(alternatives)) {
    const branches: readonly unknown[] = alternatives;
    const [only, ...others] = branches.filter((branch) => !(isObject(branch) && branch['type'] === 'null'));
    return isObject(only) && others.length === 0 ? revive(value, only, root) : value;
  }
  switch (resolved['type']) {
    case 'string':
      return typeof value === 'string' ? reviveText(value, resolved) : value;
    case 'array':
      return Array.isArray(value) ? reviveArray(value, resolved, root) : value;
    case 'object':
      return isObject(value) ? reviveObject(value, resolved, root) : value;
    default:
      return value;
  }
}

function reviveText(text: string, schema: Schema): unknown {
  if (schema['format'] === 'date-time') {
    const date = new Date(text);
    return Number.isNaN(date.getTime()) ? text : date;
  }
  if (schema['contentEncoding'] === 'base64') return new Uint8Array(Buffer.from(text, 'base64'));
  if (schema['pattern'] === BIGINT_PATTERN && /^-?\d+$/.test(text)) return BigInt(text);
  return text;
}

function reviveArray(items: readonly unknown[], schema: Schema, root: Schema): unknown {
  const prefix: readonly unknown[] = Array.isArray(schema['prefixItems']) ? schema['prefixItems'] : [];
  const revived = items.map((item, index) => {
    const itemSchema = prefix[index] ?? schema['items'];
    return isObject(itemSchema) ? revive(item, itemSchema, root) : item;
  });
  return schema['uniqueItems'] === true ? new Set(revived) : revived;
}

function reviveObject(value: Schema, schema: Schema, root: Schema): unknown {
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const additional = schema['additionalProperties'];
  const revived: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    // Assigning it would set the prototype of the revived object.
    if (key === '__proto__') continue;
    // `in`, as in the reference: a member called like one of Object's own (`constructor`) is not an additional one.
    const memberSchema = key in properties ? properties[key] : additional;
    revived[key] = isObject(memberSchema) ? revive(member, memberSchema, root) : member;
  }
  return revived;
}

/** Follows `#` and `#/json/pointer`; `undefined` when it leads nowhere. Siblings of `$ref` are ignored. */
function resolveReferences(schema: Schema, root: Schema): Schema | undefined {
  let current = schema;
  for (let hops = 0; typeof current['$ref'] === 'string'; hops += 1) {
    const target = hops < MAX_REF_HOPS ? pointedAt(current['$ref'], root) : undefined;
    if (target === undefined) return undefined;
    current = target;
  }
  return current;
}

function pointedAt(reference: string, root: Schema): Schema | undefined {
  if (reference === '#') return root;
  if (!reference.startsWith('#/')) return undefined;
  let current: Schema = root;
  for (const part of reference.slice(2).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    const next = Object.hasOwn(current, key) ? current[key] : undefined;
    if (!isObject(next)) return undefined;
    current = next;
  }
  return current;
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

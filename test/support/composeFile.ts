// Reads a compose file as Compose does, as far as ours goes: merge keys, `${VARIABLE}` with `:-` and `:?`, `$$`, and
// variables without a value, which are taken from around it.

import { parse } from 'yaml';
import { z } from 'zod';
import { read } from './sourceTree.js';

export type Environment = Readonly<Record<string, string>>;

const mountSchema = z.union([
  z.string().transform((text) => {
    const [source = '', target = ''] = text.split(':');
    return { type: 'volume', source, target, bind: undefined };
  }),
  z.object({
    type: z.string(),
    source: z.string(),
    target: z.string(),
    bind: z.object({ create_host_path: z.boolean() }).optional(),
  }),
]);

const serviceSchema = z.looseObject({
  image: z.string(),
  build: z.object({ context: z.string(), dockerfile: z.string() }).optional(),
  entrypoint: z.array(z.string()).optional(),
  command: z.array(z.string()),
  environment: z.record(z.string(), z.string().nullable()).default({}),
  user: z.string().optional(),
  secrets: z.array(z.string()),
  networks: z.array(z.string()),
  volumes: z.array(mountSchema).default([]),
  depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
  stop_grace_period: z.string(),
  restart: z.string(),
  init: z.boolean(),
  read_only: z.boolean(),
  cap_drop: z.array(z.string()),
  security_opt: z.array(z.string()),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
});

const composeSchema = z.looseObject({
  services: z.record(z.string(), serviceSchema),
  networks: z.record(z.string(), z.object({ internal: z.boolean().optional() }).nullable()),
  volumes: z.record(z.string(), z.unknown()),
  secrets: z.record(z.string(), z.object({ file: z.string() })),
});

export type ComposeService = z.infer<typeof serviceSchema>;
export type ComposeFile = z.infer<typeof composeSchema>;

/** The plain value of a compose file: merged, nothing filled in. */
export function rawCompose(path: string): unknown {
  return parse(read(path), { merge: true }) as unknown;
}

/** @throws Error that names a variable which must be there and isn't */
export function readCompose(path: string, around: Environment): ComposeFile {
  return composeSchema.parse(interpolated(rawCompose(path), around));
}

/** What a service's process finds in its environment. */
export function environmentOf({ environment }: ComposeService, around: Environment): Environment {
  const given = Object.entries(environment).map(([name, value]) => [name, value ?? around[name]] as const);
  return Object.fromEntries(
    given.filter((entry): entry is readonly [string, string] => entry[1] !== undefined),
  );
}

/** Names of all variables that a compose file takes from around it. */
export function variablesOf(path: string): readonly string[] {
  const written = [...read(path).matchAll(/(?<!\$)\$\{(\w+)/g)].map(([, name = '']) => name);
  const passedOn = [...read(path).matchAll(/^ +([A-Z_]+):$/gm)].map(([, name = '']) => name);
  return [...new Set([...written, ...passedOn])].sort();
}

function interpolated(value: unknown, around: Environment): unknown {
  if (typeof value === 'string') return filled(value, around);
  if (Array.isArray(value)) return value.map((each) => interpolated(each, around));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, interpolated(each, around)]));
}

function filled(text: string, around: Environment): string {
  return text.replace(
    /\$\$|\$\{(\w+)(?::([-?])([^}]*))?\}/g,
    (whole, name: string | undefined, mark: string | undefined, rest: string | undefined) => {
      if (name === undefined) return '$';
      const value = around[name] ?? '';
      if (value !== '') return value;
      if (mark === '?') throw new Error(`${name}: ${rest ?? whole}`);
      return rest ?? '';
    },
  );
}

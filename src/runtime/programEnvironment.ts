// The environment of the program and of its shells (protocol/program.md 3.1). It guards platform variables, which are
// the runtime's own, from author code. What the executor marks its processes with stays: it finds survivors by it.

/** program.md 3.1, and the host's socket, which only the program's own process gets. */
const WITHHELD = [
  'RUN_ID',
  'BOARDWALK_CONTROL_PLANE_URL',
  'BOARDWALK_RUN_TOKEN',
  'BOARDWALK_API_KEY',
  'BOARDWALK_TASK_CPU_UNITS',
  'BOARDWALK_BYO_PROVIDERS',
  'BOARDWALK_HOST_SOCK',
] as const;

/** @param secrets resolved references of the manifest; they win over what was there */
export function programEnvironment(
  own: Readonly<Record<string, string | undefined>>,
  secrets: Readonly<Record<string, string>>,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [key, value] of Object.entries({ ...own, ...secrets })) {
    if (value !== undefined) env[key] = value;
  }
  for (const key of WITHHELD) Reflect.deleteProperty(env, key);
  return env;
}

// Reads a Dockerfile into stages and instructions, as far as ours go: no here-documents, no escape directive. For tests
// that ask what an image is made of without building it.

export interface Instruction {
  /** In capitals, e.g. `COPY`. */
  readonly name: string;
  /** `--from=build` is `from: 'build'`. */
  readonly flags: Readonly<Record<string, string>>;
  /** What follows the flags, on one line. */
  readonly rest: string;
  /** The same as words: the exec form's own, else split at blanks. */
  readonly words: readonly string[];
}

export interface Stage {
  /** As `COPY --from` names it, '' where it has no name. */
  readonly name: string;
  /** With the defaults of the arguments in place. */
  readonly base: string;
  readonly instructions: readonly Instruction[];
}

export interface Dockerfile {
  /** Arguments before the first stage, with their defaults. */
  readonly args: Readonly<Record<string, string>>;
  readonly stages: readonly Stage[];
}

export function parseDockerfile(text: string): Dockerfile {
  const args: Record<string, string> = {};
  const stages: (Stage & { readonly instructions: Instruction[] })[] = [];
  for (const line of logicalLines(text)) {
    const instruction = parseInstruction(line);
    if (instruction.name === 'FROM') {
      const [base = '', , name = ''] = instruction.words;
      stages.push({ name, base: filled(base, args), instructions: [] });
      continue;
    }
    const stage = stages.at(-1);
    if (stage !== undefined) stage.instructions.push(instruction);
    else {
      const [name = '', fallback = ''] = instruction.rest.split(/=(.*)/s);
      args[name] = fallback;
    }
  }
  return { args, stages };
}

/** The stage that becomes the image. */
export function finalStage({ stages }: Dockerfile): Stage {
  const stage = stages.at(-1);
  if (stage === undefined) throw new Error('The Dockerfile has no stage.');
  return stage;
}

/** The last instruction of a name, which is the one that counts. */
export function lastOf({ instructions }: Stage, name: string): Instruction | undefined {
  return instructions.findLast((instruction) => instruction.name === name);
}

function logicalLines(text: string): readonly string[] {
  return text
    .split('\n')
    .filter((line) => !/^\s*(?:#|$)/.test(line))
    .join('\n')
    .replace(/\\\n/g, ' ')
    .split('\n');
}

function parseInstruction(line: string): Instruction {
  const [, name = '', behind = ''] = /^\s*([A-Za-z]+)\s+(.*)$/.exec(line) ?? [];
  const flags: Record<string, string> = {};
  let rest = behind.trim();
  for (;;) {
    const [whole, flag, value = ''] = /^--([a-z-]+)(?:=(\S+))?\s+/.exec(rest) ?? [];
    if (whole === undefined || flag === undefined) break;
    flags[flag] = value;
    rest = rest.slice(whole.length);
  }
  const words = rest.startsWith('[') ? (JSON.parse(rest) as string[]) : rest.split(/\s+/);
  return { name: name.toUpperCase(), flags, rest, words };
}

function filled(text: string, args: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{(\w+)\}/g, (_, name: string) => args[name] ?? '');
}

// Turns our commands into a command line: flags from the settings they name, help, usage errors, exit codes.
// A person never sees a stack trace from here: what we throw for them has its words, everything else is named as a
// fault of ours.

import { Command, CommanderError, Option } from 'commander';
import { OperatorError } from '../contract/operatorError.js';
import { readConfig } from './configFile.js';
import { resolveSetting, resolveSettings, unknownVariables, type Given } from './givenSettings.js';
import type { GivenValue, Setting } from './setting.js';
import { flagOf, SETTINGS, variableOf, type SettingName, type Settings } from './settings.js';

/** design section 11. */
export const EXIT = { done: 0, failed: 1, usage: 2, secondSignal: 130 } as const;

export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
}

export interface CommandDefinition<Name extends SettingName> {
  /** Words on the command line, e.g. `key generate`. */
  readonly words: string;
  /** What the first of two words is about. */
  readonly group?: string;
  readonly summary: string;
  readonly description?: string;
  readonly argument?: { readonly name: string; readonly help: string };
  readonly settings: readonly Name[];
  readonly required?: readonly Name[];
  /** Flags that may be given several times as `K=V`, by flag name without dashes. */
  readonly pairs?: Readonly<Record<string, Pairs>>;
  /** Brings what the command does; its answer is the exit code. */
  readonly load: () => Promise<CommandRun<Name>>;
}

export interface Pairs {
  readonly help: string;
  readonly name: RegExp;
  /** What a name may be, in words. */
  readonly allowed: string;
}

export type CommandRun<Name extends SettingName> = (
  values: Settings<Name>,
  input: CommandInput,
  terminal: Terminal,
  /** What the values were found in. */
  given?: Given,
) => Promise<number>;

export interface CommandInput {
  readonly argument: string | undefined;
  readonly pairs: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

export class CommandLine {
  readonly #root: Command;
  readonly #terminal: Terminal;
  #exitCode: number = EXIT.done;
  /** null: the command has no --debug. */
  #debug: boolean | null = null;

  constructor(version: string, terminal: Terminal) {
    this.#terminal = terminal;
    this.#root = new Command('boardwalk-fleet')
      .description('Runs Boardwalk agent workflows on many machines behind one Redis.')
      .version(version, '--version', 'print the version')
      .showHelpAfterError('(add --help for what is allowed)')
      .exitOverride()
      .configureOutput({
        writeOut: (text) => terminal.stdout.write(text),
        writeErr: (text) => terminal.stderr.write(text),
      });
  }

  add<const Name extends SettingName>(definition: CommandDefinition<Name>): this {
    const words = definition.words.split(' ');
    const parent = words.length === 1 ? this.#root : this.#group(words[0] ?? '', definition.group ?? '');
    const command = parent
      .command(words.at(-1) ?? '')
      .summary(definition.summary)
      .description(definition.description ?? definition.summary)
      .allowExcessArguments(false);
    if (definition.argument !== undefined)
      command.argument(`<${definition.argument.name}>`, definition.argument.help);
    for (const name of definition.settings)
      addOption(command, name, definition.required?.includes(name) ?? false);
    addOption(command, 'config', false);
    for (const [flag, { help }] of Object.entries(definition.pairs ?? {})) {
      const option = new Option(`--${flag} <K=V>`, `${help} (may be given several times)`);
      command.addOption(option.argParser(gather));
    }
    command.addHelpText('after', variablesHelp(definition.settings));
    command.action(async (...given: unknown[]) => {
      const argument = typeof given[0] === 'string' ? given[0] : undefined;
      this.#exitCode = await this.#run(definition, command.opts(), argument);
    });
    return this;
  }

  /** Never throws; the answer is the exit code. */
  async run(argv: readonly string[]): Promise<number> {
    try {
      if (argv.length === 0) {
        this.#root.outputHelp();
        return EXIT.done;
      }
      // With --help behind it, a word that is no command would get the general help and pass for one.
      if (argv[1] === '--help' || argv[1] === '-h') this.#mustKnow(argv[0] ?? '');
      await this.#root.parseAsync([...argv], { from: 'user' });
      return this.#exitCode;
    } catch (error) {
      return this.#report(error);
    }
  }

  #mustKnow(word: string): void {
    if (word.startsWith('-') || this.#root.commands.some((command) => command.name() === word)) return;
    this.#root.error(`error: unknown command '${word}'`, { exitCode: EXIT.usage });
  }

  #group(word: string, about: string): Command {
    const known = this.#root.commands.find((command) => command.name() === word);
    return known ?? this.#root.command(word).summary(about).description(about);
  }

  async #run<Name extends SettingName>(
    definition: CommandDefinition<Name>,
    options: Record<string, unknown>,
    argument: string | undefined,
  ): Promise<number> {
    const unknown = unknownVariables(this.#terminal.environment);
    if (unknown.length > 0)
      throw new OperatorError('SETTING_UNKNOWN', `${unknown.join(', ')}: no such setting.`, {
        hint: `The variables of this command: ${definition.settings.map(variableOf).join(', ')}.`,
        usage: true,
      });
    const flags: Record<string, GivenValue> = {};
    for (const [key, value] of Object.entries(options))
      if (typeof value === 'string' || typeof value === 'boolean') flags[key] = value;
      else if (Array.isArray(value)) flags[key] = value.map(String);
    const given = withConfig({ flags, environment: this.#terminal.environment });
    const values = resolveSettings(definition.settings, given);
    const { debug } = values as { readonly debug?: boolean };
    this.#debug = debug ?? null;
    requireGiven(
      (definition.required ?? [])
        .filter((name) => values[name] === undefined)
        .map((name) => ({ flag: flagOf(name), advice: `Give ${flagOf(name)} or set ${variableOf(name)}.` })),
    );
    const pairs = Object.fromEntries(
      Object.entries(definition.pairs ?? {}).map(([flag, kind]) => [
        flag,
        parsePairs(flag, kind, options[flag]),
      ]),
    );
    const run = await definition.load();
    return run(values, { argument, pairs }, this.#terminal, given);
  }

  #report(error: unknown): number {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    const { stderr } = this.#terminal;
    if (error instanceof OperatorError) {
      sayError(error, stderr);
      if (this.#debug === true && error.cause !== undefined) stderr.write(`${stackOf(error.cause)}\n`);
      return error.usage ? EXIT.usage : EXIT.failed;
    }
    const message = error instanceof Error ? error.message : String(error);
    stderr.write(`error: unexpected fault: ${message}\n`);
    if (this.#debug === true) stderr.write(`${stackOf(error)}\n`);
    stderr.write(
      this.#debug === false
        ? '       Run again with --debug for details and report it.\n'
        : '       Please report it.\n',
    );
    return EXIT.failed;
  }
}

export function sayError({ message, hint }: OperatorError, stderr: NodeJS.WriteStream): void {
  stderr.write(`error: ${message}\n`);
  if (hint !== undefined) stderr.write(`${hint.replace(/^/gm, '       ')}\n`);
}

export interface MissingFlag {
  readonly flag: string;
  /** What the flag is needed for; shown when it is the only one. */
  readonly why?: string;
  /** What to do, as a sentence. */
  readonly advice: string;
}

/** @throws OperatorError `SETTING_MISSING`, which names all that is missing at once */
export function requireGiven(missing: readonly MissingFlag[]): void {
  const [first, ...more] = missing;
  if (first === undefined) return;
  const named =
    more.length === 0
      ? `${first.flag} is missing${first.why === undefined ? '' : `: ${first.why}`}.`
      : `${missing.map(({ flag }) => flag).join(', ')} are missing.`;
  throw new OperatorError('SETTING_MISSING', named, {
    hint: missing.map(({ advice }) => advice).join('\n'),
    usage: true,
  });
}

function withConfig(given: Given): Given {
  const { value, source } = resolveSetting('config', given);
  const named = typeof value === 'string' && source !== null ? { where: source, path: value } : null;
  return { ...given, file: readConfig(named) };
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function addOption(command: Command, name: SettingName, required: boolean): void {
  const definition: Setting<unknown> = SETTINGS[name];
  if (definition.secret === true) return;
  const isSwitch = definition.placeholder === undefined;
  const words = [definition.help];
  if (definition.several === true) words.push('(may be given several times)');
  const fallback = definition.fallbackHelp ?? (isSwitch ? undefined : shownDefault(definition.fallback));
  if (required) words.push('(required)');
  else if (fallback !== undefined) words.push(`(default: ${fallback})`);
  const flags = isSwitch ? flagOf(name) : `${flagOf(name)} <${definition.placeholder}>`;
  const option = new Option(flags, words.join(' '));
  command.addOption(definition.several === true ? option.argParser(gather) : option);
}

/** What a flag that is given several times becomes. */
function gather(value: string, former: string[] | undefined): string[] {
  return [...(former ?? []), value];
}

function shownDefault(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (Array.isArray(value)) return value.join(',');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function variablesHelp(names: readonly SettingName[]): string {
  if (names.length === 0) return '';
  const secrets = names.filter((name) => (SETTINGS[name] as { secret?: boolean }).secret === true);
  const lines = [
    '',
    `Every flag is also an environment variable: ${flagOf(names[0] ?? 'url')} is ${variableOf(names[0] ?? 'url')}.`,
  ];
  for (const name of secrets)
    lines.push(`${variableOf(name)} or ${variableOf(name)}_FILE: ${SETTINGS[name].help}.`);
  return lines.join('\n');
}

/** What was given is not repeated: it may be a secret. */
function parsePairs(
  flag: string,
  { name, allowed }: Pairs,
  given: unknown,
): Readonly<Record<string, string>> {
  const pairs: [string, string][] = [];
  for (const pair of Array.isArray(given) ? given.map(String) : []) {
    const cut = pair.indexOf('=');
    if (cut < 0)
      throw new OperatorError('SETTING_INVALID', `--${flag}: the value must be NAME=VALUE.`, { usage: true });
    if (!name.test(pair.slice(0, cut)))
      throw new OperatorError('SETTING_INVALID', `--${flag}: the name before the = must be ${allowed}.`, {
        usage: true,
      });
    pairs.push([pair.slice(0, cut), pair.slice(cut + 1)]);
  }
  return Object.fromEntries(pairs);
}

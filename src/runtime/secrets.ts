// Secrets that the program may have (protocol/run-control.md 8.1). It guards against a value that becomes known before
// it can be redacted: it is remembered first, and given out afterwards.

import { secretReference } from '../contract/manifest.js';
import { readSecret } from '../contract/runAnswers.js';
import type { SecretSet } from '../redaction/secretSet.js';
import { CALL_TIMEOUT_MS, type Control, type ControlCall, jsonOf, UnexpectedAnswer } from './control.js';
import { RunFailure } from './runFailure.js';

export interface SecretsOptions {
  readonly control: Pick<Control, 'call' | 'unexpected'>;
  readonly known: SecretSet;
  readonly signal: AbortSignal;
}

export class Secrets {
  readonly #options: SecretsOptions;

  constructor(options: SecretsOptions) {
    this.#options = options;
  }

  /** @throws RunFailure `NOT_FOUND`, `FORBIDDEN`; UnexpectedAnswer; GatewayError */
  async resolve(name: string): Promise<string> {
    const { control, known, signal } = this.#options;
    const call: ControlCall = {
      name: 'secrets/resolve',
      method: 'POST',
      path: 'secrets/resolve',
      body: { name },
      signal,
    };
    const answer = await control.call(call, CALL_TIMEOUT_MS.control);
    switch (answer.status) {
      case 200: {
        const { value } = readSecret(jsonOf(call.name, answer.body));
        known.add(value);
        return value;
      }
      case 404:
        throw new RunFailure('NOT_FOUND', `The secret ${name} does not exist.`, {
          hint: `Set ${name} in the workspace's secrets, or correct its name.`,
        });
      case 403:
        throw new RunFailure('FORBIDDEN', `The secret ${name} is not granted to this workflow.`, {
          hint: `List ${name} under permissions.secrets in the workflow's descriptor and deploy it again.`,
        });
      default:
        throw control.unexpected(call, answer);
    }
  }

  /**
   * The variables of a manifest whose values are references to secrets (protocol/program.md 3.1).
   *
   * @throws RunFailure for what fails the run; UnexpectedAnswer and GatewayError for what may pass
   */
  async environment(env: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    const references = Object.entries(env).flatMap(([key, value]) => {
      const name = secretReference(value);
      return name === null ? [] : [{ key, name }];
    });
    const resolved = references.map(async ({ key, name }) => {
      const value = await this.resolve(name).catch((error: unknown) => {
        if (!(error instanceof UnexpectedAnswer) || error.isPassing) throw error;
        throw new RunFailure('INTERNAL_ERROR', `The secret ${name} can't be had: ${error.message}`);
      });
      if (key === '' || key.includes('=') || key.includes('\0') || value.includes('\0')) {
        throw new RunFailure(
          'VALIDATION_FAILED',
          `The variable ${JSON.stringify(key)} can't be set from the secret ${name}.`,
          {
            hint: 'A name must not be empty nor contain `=`; neither name nor value may contain a NUL character.',
          },
        );
      }
      return [key, value] as const;
    });
    return Object.fromEntries(await Promise.all(resolved));
  }
}

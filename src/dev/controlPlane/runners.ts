// Enrolment: registration tokens that are good once and for an hour, and the runners that came of them, found by their
// token (protocol/pool.md 1, 3). A runner that was deregistered is as unknown as one that never was.

import type { RegisterRequest } from '../../contract/pool.js';
import { newId, newToken } from './tokens.js';

export interface Runner {
  readonly id: string;
  readonly token: string;
  readonly pool: string;
  readonly name: string;
  readonly labels: readonly string[];
}

const REGISTRATION_MS = 3_600_000;

export class Runners {
  readonly #registrations = new Map<string, { readonly pool: string; readonly until: number }>();
  readonly #byToken = new Map<string, Runner>();
  readonly #draining = new WeakSet<Runner>();

  /** A new registration token for the pool. */
  invite(pool: string): string {
    const token = newToken('bwkreg');
    this.#registrations.set(token, { pool, until: Date.now() + REGISTRATION_MS });
    return token;
  }

  /** `null`: the token is unknown, spent or too old. */
  register({ registration_token, name, labels }: RegisterRequest): Runner | null {
    const registration = this.#registrations.get(registration_token);
    this.#registrations.delete(registration_token);
    if (registration === undefined || registration.until < Date.now()) return null;
    const { pool } = registration;
    const runner: Runner = { id: newId('rnr'), token: newToken('bwkr'), pool, name, labels };
    this.#byToken.set(runner.token, runner);
    return runner;
  }

  withToken(token: string | null): Runner | null {
    return (token === null ? undefined : this.#byToken.get(token)) ?? null;
  }

  deregister(runner: Runner): void {
    this.#byToken.delete(runner.token);
  }

  /** Every runner that is registered now is to claim nothing more. */
  drain(): void {
    for (const runner of this.#byToken.values()) this.#draining.add(runner);
  }

  isDraining(runner: Runner): boolean {
    return this.#draining.has(runner);
  }
}

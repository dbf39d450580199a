// What parts of a fleet have logged in a test, parsed, and a way to wait for it.

import { pino, type Logger } from 'pino';

export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export class Lines {
  readonly all: LogLine[] = [];
  readonly log: Logger;
  #wake: (() => void)[] = [];

  constructor() {
    this.log = pino({ level: 'debug' }, { write: (text: string) => this.#add(JSON.parse(text) as LogLine) });
  }

  async until(text: string): Promise<LogLine> {
    for (;;) {
      const found = this.all.find((line) => line.msg.includes(text));
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  #add(line: LogLine): void {
    this.all.push(line);
    for (const wake of this.#wake.splice(0)) wake();
  }
}

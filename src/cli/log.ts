// The process's log: JSON lines on standard error, readable ones where a person watches.

import { pino, type Logger } from 'pino';
import pretty from 'pino-pretty';

export interface LogOptions {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly stream: NodeJS.WriteStream;
}

/**
 * Standard output stays free for what a command prints. The redaction list is the second line of defence: no part of
 * the program logs these on purpose.
 */
export function openLog(options: LogOptions): Logger {
  const settings = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: describeError },
    redact: {
      paths: [
        '*.runToken',
        '*.apiToken',
        '*.runnerToken',
        '*.authorization',
        '*.bearer',
        '*.password',
        '*.token',
      ],
      censor: '[REDACTED]',
    },
  };
  if (!options.stream.isTTY) return pino(settings, options.stream);
  return pino(
    settings,
    pretty({
      colorize: true,
      destination: options.stream,
      ignore: 'pid,hostname',
      translateTime: 'HH:MM:ss.l',
      sync: true,
    }),
  );
}

/** An error without what libraries hang on it: ioredis, for one, adds the command with its arguments. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { type, message, stack } = pino.stdSerializers.err(error);
  const code: unknown = 'code' in error ? error.code : undefined;
  return { type, message, stack, ...(typeof code === 'string' ? { code } : {}) };
}

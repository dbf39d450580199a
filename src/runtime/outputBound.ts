// How large a program's returned value may be. It goes out twice, as a row and in the finalize, and each must fit one
// request (R27). Checked by the loader, before anything is sent, and by the host, which trusts no loader.

/** Bytes of the encoded value (protocol/program.md 7). */
const OUTPUT_BYTES = 2 * 1024 * 1024;

export interface OutputRefusal {
  readonly code: 'VALIDATION_FAILED';
  readonly message: string;
  readonly hint: string;
}

/** `undefined` when the value may go out. `value` is plain JSON. */
export function outputRefusal(value: unknown): OutputRefusal | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(value ?? null));
  if (bytes <= OUTPUT_BYTES) return undefined;
  return {
    code: 'VALIDATION_FAILED',
    message: `The returned value is ${bytes} bytes of JSON; at most ${OUTPUT_BYTES} are taken.`,
    hint: 'Return a summary, and keep large data in a file or an artifact.',
  };
}

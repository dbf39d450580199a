// The first line of standard input, in which an executor hands over a run. It guards against an input that never gets
// to its line end; what is in the line, the contract knows.

import type { Readable } from 'node:stream';

const LINE_BYTES = 1024 * 1024;

/** Reads up to the first line end and lets go of the stream. @throws Error when there is no whole line */
export async function readHandOverLine(input: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input as AsyncIterable<Buffer>) {
    const end = chunk.indexOf(0x0a);
    chunks.push(end < 0 ? chunk : chunk.subarray(0, end));
    if (end >= 0) return Buffer.concat(chunks).toString('utf8');
    bytes += chunk.byteLength;
    if (bytes > LINE_BYTES) throw new Error(`the hand-over is longer than ${LINE_BYTES} bytes`);
  }
  throw new Error('standard input ended without a hand-over; this program is started by boardwalk-fleet');
}

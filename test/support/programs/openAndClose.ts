// A process that opens everything a fleet has, closes it and then only ends if nothing holds it.
// With `gone` as the second argument it says `ready`, waits for a line, and closes while Redis is away.
import { once } from 'node:events';
import { openFleet } from '../../../src/queue/fleet.js';
import { generateFleetKey, parseFleetKeys } from '../../../src/queue/seal.js';
import { silent } from '../fleet.js';

const [url = '', mode = ''] = process.argv.slice(2);
const keys = parseFleetKeys(generateFleetKey());
const fleet = await openFleet({ name: 'test', redis: { url }, keys, log: silent });
const consumer = fleet.runs.consumer('default', { lockMs: 10_000, stalledCheckMs: 2_000 });
consumer.start();
await consumer.take(new AbortController().signal);
void consumer.take(new AbortController().signal);
const worker = fleet.flushes.worker(() => Promise.resolve('drained'), { concurrency: 2 });
worker.start();
await fleet.flushes.add('run_1');
await fleet.runs.depth('default');
if (mode === 'gone') {
  // Ends with the test that started it, at the latest.
  process.stdin.once('end', () => process.exit(1));
  process.stdout.write('ready\n');
  await once(process.stdin, 'data');
  process.stdin.destroy();
  void fleet.lanes.unshipped(1).catch(() => undefined);
}
await worker.stop({ deadline: performance.now() + 1_000 });
await fleet.close();
await fleet.close();
process.stdout.write('closed\n');

// A process that takes one run, says which, and holds it without renewing until it is killed.
import { openFleet } from '../../../src/queue/fleet.js';
import { parseFleetKeys } from '../../../src/queue/seal.js';
import { silent } from '../fleet.js';

const [url = '', key = '', lockMs = ''] = process.argv.slice(2);
const fleet = await openFleet({ name: 'test', redis: { url }, keys: parseFleetKeys(key), log: silent });
const consumer = fleet.runs.consumer('default', {
  lockMs: Number(lockMs),
  stalledCheckMs: Number(lockMs) / 5,
});
consumer.start();
// Ends with the test that started it, at the latest.
process.stdin.resume().once('close', () => process.exit());
for (;;) {
  const taken = await consumer.take(new AbortController().signal);
  if (taken !== null) process.stdout.write(`${taken.job.runId}\n`);
}

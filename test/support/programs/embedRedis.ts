// A process that starts an embedded Redis on a directory and stays until it is killed.
import { startEmbeddedRedis } from '../../../src/dev/embeddedRedis.js';
import { silent } from '../fleet.js';

const [dir = ''] = process.argv.slice(2);
const redis = await startEmbeddedRedis({ dir, log: silent });
process.stdout.write(`${redis.url}\n`);
// Ends with the test that started it, at the latest.
process.stdin.resume().once('close', () => process.exit());

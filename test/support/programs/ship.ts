// A process that ships lanes until it is killed.
import { Shipper } from '../../../src/events/shipper.js';
import { PlatformHttp } from '../../../src/platform/http.js';
import { openFleet } from '../../../src/queue/fleet.js';
import { parseFleetKeys } from '../../../src/queue/seal.js';
import { silent } from '../fleet.js';

const [url = '', key = '', lockMs = ''] = process.argv.slice(2);
const fleet = await openFleet({ name: 'test', redis: { url }, keys: parseFleetKeys(key), log: silent });
const http = new PlatformHttp({ userAgent: 'test' });
new Shipper({ fleet, http, log: silent, lockMs: Number(lockMs), maxRows: 5 }).start();
// Ends with the test that started it, at the latest.
process.stdin.resume().once('close', () => process.exit());
process.stdout.write('shipping\n');

import { afterAll, beforeAll, expect, it } from 'vitest';
import { generateFleetKey, parseFleetKeys } from '../../../src/queue/seal.js';
import { openTestFleet } from '../../support/fleet.js';
import { startTestRedis, type TestRedis } from '../../support/redis.js';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(() => redis.stop());

async function opened(name: string, ...lines: readonly string[]): Promise<void> {
  const fleet = await openTestFleet(redis, { name, keys: parseFleetKeys(lines.join('\n')) });
  await fleet.close();
}

it('a process with another key than its fleet is refused at start, by the ids of both', async () => {
  const [ours, other] = [generateFleetKey(), generateFleetKey()];
  await opened('one', ours);
  await opened('one', ours);
  const id = ours.split('.')[1] ?? '';
  await expect(opened('one', other)).rejects.toMatchObject({
    code: 'FLEET_KEY_FOREIGN',
    message: expect.stringContaining(id) as string,
  });
  await opened('another', other);
});

it('a key may be changed: first all know it, then it seals, then the old one goes', async () => {
  const [older, newer] = [generateFleetKey(), generateFleetKey()];
  await opened('changing', older);
  await opened('changing', older, newer);
  await opened('changing', newer, older);
  await opened('changing', newer);
  await expect(opened('changing', older)).rejects.toMatchObject({ code: 'FLEET_KEY_FOREIGN' });
});

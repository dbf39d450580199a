import { describe, expect, it } from 'vitest';
import { Dispatch, type Placed } from '../../../src/dev/controlPlane/dispatch.js';

interface Job extends Placed {
  readonly name: string;
}

const job = (name: string, labels: readonly string[] = [], pool = 'p'): Job => ({ name, labels, pool });
const taker = (labels: readonly string[] = [], pool = 'p'): Placed => ({ labels, pool });

async function drained(dispatch: Dispatch<Job>, who: Placed): Promise<string[]> {
  const names: string[] = [];
  for (;;) {
    const next = await dispatch.poll(who, 0).answer;
    if (next === null) return names;
    names.push(next.name);
  }
}

describe('dispatch', () => {
  it('keeps the order over label sets, whatever their labels’ order', async () => {
    const dispatch = new Dispatch<Job>();
    dispatch.add(job('1', ['a', 'b']));
    dispatch.add(job('2'));
    dispatch.add(job('3', ['b', 'a']));
    dispatch.add(job('4', ['c']));
    expect(await drained(dispatch, taker(['a', 'b']))).toEqual(['1', '2', '3']);
    expect(await drained(dispatch, taker(['c']))).toEqual(['4']);
  });

  it('skips what was withdrawn, and gives what came back first', async () => {
    const dispatch = new Dispatch<Job>();
    const jobs = ['1', '2', '3', '4'].map((name) => job(name));
    for (const each of jobs) dispatch.add(each);
    const [one, two, , four] = jobs;
    expect(await dispatch.poll(taker(), 0).answer).toBe(one);
    if (one !== undefined) dispatch.add(one, 'front');
    if (two !== undefined) dispatch.withdraw(two);
    if (four !== undefined) dispatch.withdraw(four);
    expect(await drained(dispatch, taker())).toEqual(['1', '3']);
  });

  it('stays in order over many thousands', async () => {
    const dispatch = new Dispatch<Job>();
    const names = Array.from({ length: 20_000 }, (_, n) => String(n));
    for (const name of names) dispatch.add(job(name));
    expect(await drained(dispatch, taker())).toEqual(names);
  });

  it('gives a new job to the poll that has waited longest and may have it', async () => {
    const dispatch = new Dispatch<Job>();
    const other = dispatch.poll(taker([], 'q'), 60_000);
    const first = dispatch.poll(taker(), 60_000);
    const second = dispatch.poll(taker(['a']), 60_000);
    dispatch.add(job('1', ['a']));
    dispatch.add(job('2'));
    expect((await second.answer)?.name).toBe('1');
    expect((await first.answer)?.name).toBe('2');
    dispatch.close();
    expect(await other.answer).toBeNull();
    expect(await dispatch.poll(taker(), 60_000).answer).toBeNull();
  });

  it('releases the polls of one taker', async () => {
    const dispatch = new Dispatch<Job>();
    const [one, two] = [taker(), taker()];
    const [released, kept] = [dispatch.poll(one, 60_000), dispatch.poll(two, 60_000)];
    dispatch.releaseAll(one);
    expect(await released.answer).toBeNull();
    dispatch.add(job('1'));
    expect((await kept.answer)?.name).toBe('1');
  });
});

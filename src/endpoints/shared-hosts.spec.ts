import { describe, expect, it } from 'vitest';
import { SharedHost, type SharedUrl } from '../../test/support/shared-host.js';

const origin = 'http://gateway';
const hanging = (path: string, everyMs: number): SharedUrl => ({
  url: `${origin}/${path}`,
  everyMs,
  answerMs: Infinity,
});
const answering = (path: string, everyMs: number): SharedUrl => ({ url: `${origin}/${path}`, everyMs, answerMs: 10 });
const parkedOf = ({ parked }: SharedHost) => parked.map(({ address }) => address);

/** Longest time between two deliveries, in milliseconds. */
function longestGap(times: readonly number[]): number {
  return Math.max(...times.slice(1).map((time, nr) => time - times[nr]!));
}

describe('a host with several URLs', () => {
  it.each([
    ['whose line fills before a call times out', 500],
    ['whose calls time out before it has a line', 1500],
    ['that is called seldom', 5000],
  ])('keeps a quiet URL that answers beside one that hangs, %s: that one is parked alone', async (_, everyMs) => {
    const quiet = answering('quiet', 15_000);
    const loud = hanging('loud', everyMs);
    const host = new SharedHost([quiet, loud]);
    await host.run(300);
    expect([...new Set(parkedOf(host))]).toEqual([loud.url]);
    expect(host.held.get(quiet.url) ?? 0).toBe(0);
    expect(host.isParked(loud.url)).toBe(true);
    expect(host.delivered.get(quiet.url)).toHaveLength(20);
  });

  it('closes the URL that was parked alone when it answers again, and parks it again when it hangs again', async () => {
    const quiet = answering('quiet', 15_000);
    const loud = hanging('loud', 500);
    const host = new SharedHost([quiet, loud]);
    await host.run(60);
    loud.answerMs = 10;
    await host.run(30);
    expect(host.isParked(loud.url)).toBe(false);
    loud.answerMs = Infinity;
    await host.run(60);
    expect(parkedOf(host)).toEqual([loud.url, loud.url]);
    expect(host.held.get(quiet.url) ?? 0).toBe(0);
  });

  it('is called again at once, where it was only slow to answer its first calls', async () => {
    const slow = { ...hanging('slow', 100), answerMs: 3000 };
    const host = new SharedHost([answering('quiet', 15_000), slow]);
    await host.run(2.5);
    expect(parkedOf(host)).toEqual([slow.url]);
    await host.run(0.6);
    expect(host.isParked(slow.url)).toBe(false);
  });

  it('has one URL parked, and no call to the other narrowed, where that answers a burst while the first is probed', async () => {
    const quiet = answering('quiet', 15_000);
    const host = new SharedHost([quiet, hanging('loud', 500)]);
    await host.run(80);
    quiet.answerMs = 400;
    for (let nr = 0; nr < 60; nr++) host.publish(quiet);
    await host.run(10);
    expect([...new Set(parkedOf(host))]).toEqual([`${origin}/loud`]);
  });

  it('has two URLs of three that hang parked alone in the end, once the third was answered', async () => {
    const quiet = answering('quiet', 15_000);
    const host = new SharedHost([quiet, hanging('one', 500), hanging('two', 700)]);
    await host.run(120);
    const others = [`${origin}/one`, `${origin}/two`];
    expect(others.map((url) => host.isParked(url))).toEqual([true, true]);
    const before = host.parked.length;
    const heldBefore = host.held.get(quiet.url);
    await host.run(300);
    expect(host.parked).toHaveLength(before);
    expect(host.held.get(quiet.url)).toBe(heldBefore);
    expect(parkedOf(host).filter((address) => address === origin).length).toBeLessThanOrEqual(1);
    expect(longestGap(host.delivered.get(quiet.url)!.slice(-15))).toBe(15_000);
  });

  describe('that is dead', () => {
    const urls = (answerMs: number) =>
      Array.from({ length: 64 }, (_, nr): SharedUrl => ({ url: `${origin}/${nr}`, everyMs: 500, answerMs }));

    it('is parked as a whole, with 64 URLs of which each was well, after two seconds without an answer', async () => {
      const all = urls(10);
      const host = new SharedHost(all);
      await host.run(10);
      expect(parkedOf(host)).toEqual([]);
      for (const each of all) each.answerMs = Infinity;
      await host.run(30);
      expect(host.parked).toEqual([{ address: origin, atMs: 12_000 }]);
      for (const each of all) each.answerMs = 10;
      await host.run(20);
      expect(host.isParked(origin)).toBe(false);
      // It is not remembered of so many that each of them hung by itself.
      for (const each of all) each.answerMs = Infinity;
      await host.run(10);
      expect(parkedOf(host)).toEqual([origin, origin]);
    });

    it('is parked as a whole at the fifth delivery that fails, whichever URLs they were for', async () => {
      const all = urls(10);
      const host = new SharedHost(all);
      await host.run(10);
      for (const each of all) Object.assign(each, { verdict: { kind: 'unanswered', reason: 'ECONNREFUSED' } });
      await host.run(0.02);
      expect(host.parked).toEqual([{ address: origin, atMs: 10_010 }]);
      await host.run(60);
      expect(parkedOf(host)).toEqual([origin]);
    });

    it('is parked as a whole where it has one URL, or none of its URLs was ever answered', async () => {
      const one = new SharedHost([hanging('only', 500)]);
      await one.run(60);
      expect(parkedOf(one)).toEqual([origin]);
      const two = new SharedHost([hanging('one', 500), hanging('other', 15_000)]);
      await two.run(60);
      expect(parkedOf(two)).toEqual([origin]);
    });
  });

  it('has the URL that hangs parked alone as soon as another was answered for the first time', async () => {
    const quiet = answering('quiet', 15_000);
    const loud = hanging('loud', 500);
    const host = new SharedHost([loud]);
    await host.run(20);
    expect(parkedOf(host)).toEqual([origin]);
    host.urls.push(quiet);
    await host.run(280);
    expect(parkedOf(host)).toEqual([origin, loud.url]);
    expect(host.isParked(loud.url)).toBe(true);
    expect(host.held.get(quiet.url)).toBe(1);
  });
});

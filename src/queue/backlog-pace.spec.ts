import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BacklogPace, type BacklogLane } from './backlog-pace.service.js';

describe('the pace of a backlog', () => {
  let now: number;
  /** Of the process and of the machine. */
  let busy: { process: number; machine: number };
  let workers: number;
  let heartbeat: { isOtherFresh: boolean; noted: number; noteFresh: () => void };
  let pace: BacklogPace;
  let started: BacklogLane[];

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    now = 0;
    busy = { process: 0.1, machine: 0.1 };
    workers = 2;
    heartbeat = { isOtherFresh: false, noted: 0, noteFresh: () => void heartbeat.noted++ };
    started = [];
    pace = new BacklogPace(
      heartbeat,
      () => workers,
      () => now,
      () => busy,
    );
  });
  afterEach(() => {
    pace.stop();
    vi.useRealTimers();
  });

  function start(lane: BacklogLane, count = 1): void {
    for (let nr = 0; nr < count; nr++) {
      const turn = pace.start(lane);
      if (turn) void turn.then(() => started.push(lane));
      else started.push(lane);
    }
  }
  /** @param meanwhile in each hundredth of a second */
  async function pass(ms: number, meanwhile = () => {}): Promise<void> {
    for (const end = now + ms; now < end;) {
      now += 10;
      meanwhile();
      await vi.advanceTimersByTimeAsync(10);
    }
  }
  const isFresh = () => pace.fresh();
  /** Deliveries a second that are started while there are always more, after it has had time to find its rate. */
  async function rate(settleMs: number): Promise<number> {
    start('due', 30_000);
    await pass(settleMs, isFresh);
    const before = started.length;
    await pass(1000, isFresh);
    return started.length - before;
  }

  it('is full speed while nothing is delivered as it is accepted', () => {
    start('due', 5000);
    expect(started).toHaveLength(5000);
  });

  it('tells the other processes that something is, and obeys what they tell', () => {
    pace.fresh();
    expect(heartbeat.noted).toBe(1);
    now += 2000;
    expect(pace.start('due')).toBeUndefined();
    heartbeat.isOtherFresh = true;
    start('due', 100);
    expect(started).toHaveLength(16);
  });

  it('begins slowly, so that the onset of a burst is harmless', async () => {
    pace.fresh();
    start('due', 5000);
    await pass(100, isFresh);
    expect(started.length).toBeLessThanOrEqual(16 + 50 + 1);
    expect(started.length).toBeGreaterThanOrEqual(50);
  });

  it('rises while process and machine have time left', async () => {
    pace.fresh();
    expect(await rate(1000)).toBeGreaterThan(3000);
  });

  it.each([
    ['the process', { process: 0.9, machine: 0.2 }],
    ['the machine', { process: 0.2, machine: 0.95 }],
  ])('falls while %s is too busy, but never to a stop', async (_which, howBusy) => {
    pace.fresh();
    busy = howBusy;
    const slow = await rate(3000);
    expect(slow).toBeGreaterThan(350);
    expect(slow).toBeLessThan(450);
  });

  it('does not keep a retry that comes alone waiting', async () => {
    pace.fresh();
    busy = { process: 1, machine: 1 };
    for (let nr = 0; nr < 20; nr++) {
      start('slow');
      expect(started).toHaveLength(nr + 1);
      await pass(50, isFresh);
    }
  });

  it('begins slowly again after a few retries, whatever time there was left', async () => {
    pace.fresh();
    await pass(5000, () => {
      isFresh();
      start('slow');
    });
    const before = started.length;
    start('due', 5000);
    await pass(100, isFresh);
    expect(started.length - before).toBeLessThan(100);
  });

  it('lets the lanes take turns: no retry waits behind what was due at once', async () => {
    pace.fresh();
    busy = { process: 1, machine: 1 };
    start('due', 1000);
    start('slow', 10);
    await pass(100, isFresh);
    expect(started.filter((lane) => lane === 'slow')).toHaveLength(10);
  });

  it('rests after each batch as long as it took, for what another process may have, and at most a tenth of a second', () => {
    expect([pace.restAfter(128, 10), pace.restAfter(128, 300)]).toEqual([10, 100]);
  });

  it('rests for as long as the rate of all workers asks, less what the batch took', () => {
    pace.fresh();
    expect([pace.restAfter(128, 4), pace.restAfter(128, 300)]).toEqual([124, 100]);
  });

  it('ends with what was fresh: all that waits is started', async () => {
    pace.fresh();
    start('due', 5000);
    await pass(1100);
    expect(started).toHaveLength(5000);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends with the worker: all that waits goes on, and is held where it has no place', async () => {
    pace.fresh();
    start('due', 100);
    pace.stop();
    await Promise.resolve();
    expect(started).toHaveLength(100);
    pace.fresh();
    expect(pace.start('due')).toBeUndefined();
  });
});

import { beforeEach, describe, expect, it } from 'vitest';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import { SinceLastLook, type Looked } from './since-last-look.js';

const minute = 60_000;

describe('a look for what has become due or overdue', () => {
  let now: number;
  let looks: SinceLastLook;
  let since: number[];

  beforeEach(() => {
    now = 1_000_000_000_000;
    since = [];
    looks = new SinceLastLook({ now: () => now } as LedgerClock);
  });

  const look = (looked: Partial<Looked> = {}) =>
    looks.look((sinceMs, nowMs) => {
      since.push(sinceMs);
      return Promise.resolve({ count: 0, upToMs: nowMs, ...looked });
    });

  it('is at everything first, then only at what came since the last look and a little before', async () => {
    const first = now;
    await look();
    now += 1000;
    await look();
    expect(since).toEqual([0, first - 20_000]);
  });

  it('is at everything again every five minutes', async () => {
    await look();
    now += 4 * minute;
    await look();
    now += minute;
    await look();
    now += 1000;
    await look();
    expect(since).toEqual([0, expect.any(Number), 0, now - 21_000]);
    expect(since[1]).toBeGreaterThan(0);
  });

  it('is at everything again as often as its work needs it', async () => {
    looks = new SinceLastLook({ now: () => now } as LedgerClock, minute);
    await look();
    now += minute - 1;
    await look();
    now += 1;
    await look();
    expect(since).toEqual([0, expect.any(Number), 0]);
    expect(since[1]).toBeGreaterThan(0);
  });

  it('is at everything where the clock was set back', async () => {
    await look();
    now -= 60 * minute;
    await look();
    now += 1000;
    await look();
    expect(since).toEqual([0, 0, now - 21_000]);
  });

  it('is at what came since then where one at everything failed, until it is time for the next of those', async () => {
    const first = now;
    await look();
    now += 5 * minute;
    await expect(looks.look(() => Promise.reject(new Error('statement timeout')))).rejects.toThrow('statement timeout');
    now += minute;
    await look();
    now += 4 * minute;
    await look();
    expect(since).toEqual([0, first - 20_000, 0]);
  });

  it('begins where the last one has begun, where that left some, or failed', async () => {
    const first = now;
    await look();
    now += 20_000;
    await look({ count: 3, upToMs: undefined });
    now += 20_000;
    await expect(looks.look(() => Promise.reject(new Error('no connection')))).rejects.toThrow('no connection');
    await look();
    now += 1000;
    await look();
    expect(since).toEqual([0, first - 20_000, first - 20_000, first + 20_000]);
  });

  it('does not begin earlier after one that was ended early', async () => {
    const first = now;
    await look();
    now += 1000;
    await look({ upToMs: first - 20_000 });
    await look();
    expect(since).toEqual([0, first - 20_000, first - 20_000]);
  });

  it('is at everything until one of those has come to its end', async () => {
    await look({ upToMs: 0 });
    await look({ upToMs: 5 });
    await look();
    await look();
    expect(since).toEqual([0, 0, 0, now - 20_000]);
  });

  it('begins where the last one has ended', async () => {
    await look({ upToMs: now - 7 * minute });
    await look({ upToMs: now - 5000 });
    expect(since).toEqual([0, now - 7 * minute - 20_000]);
  });
});

import { beforeEach, describe, expect, it } from 'vitest';
import { SinceLastLook, type Looked } from './since-last-look.js';

const minute = 60_000;

describe('a rule that looks for what has become overdue', () => {
  let now: number;
  let looks: SinceLastLook;
  let since: number[];

  beforeEach(() => {
    now = 1_000_000_000_000;
    since = [];
    looks = new SinceLastLook(() => now);
  });

  const look = (looked: Partial<Looked> = {}) =>
    looks.look((sinceMs, nowMs) => {
      since.push(sinceMs);
      return Promise.resolve({ count: 0, upToMs: nowMs, ...looked });
    });

  it('looks at everything first, then only at what came since its last look and a little before', async () => {
    const first = now;
    await look();
    now += 1000;
    await look();
    expect(since).toEqual([0, first - 20_000]);
  });

  it('looks at everything again every five minutes', async () => {
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

  it('looks at everything where the clock was set back', async () => {
    await look();
    now -= 60 * minute;
    await look();
    now += 1000;
    await look();
    expect(since).toEqual([0, 0, now - 21_000]);
  });

  it('begins where it has begun before, as long as it finds some, or fails', async () => {
    const first = now;
    await look();
    now += 20_000;
    await look({ count: 3 });
    now += 20_000;
    await expect(looks.look(() => Promise.reject(new Error('no connection')))).rejects.toThrow('no connection');
    await look();
    now += 1000;
    await look();
    expect(since).toEqual([0, first - 20_000, first - 20_000, first + 20_000]);
  });

  it('begins where its last look has ended', async () => {
    await look({ upToMs: now - 7 * minute });
    await look({ upToMs: now - 5000 });
    expect(since).toEqual([0, now - 7 * minute - 20_000]);
  });
});

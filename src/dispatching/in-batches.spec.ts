import { describe, expect, it } from 'vitest';
import type { Clock } from '../infra/clock.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { doNoted, inPacedBatches } from './in-batches.js';

interface Noted {
  subscriptionId: string;
}

describe('work that is noted for subscriptions', () => {
  const postgres = {} as Postgres;
  const noted: Noted[] = Array.from({ length: 250 }, (_, nr) => ({ subscriptionId: `${nr}`.padStart(3, '0') }));
  // None is ever forgotten, as if another process had a delivery of each locked.
  const stays = {
    read: (_: Postgres, limit: number, after: string | null) =>
      Promise.resolve(noted.filter(({ subscriptionId }) => subscriptionId > (after ?? '')).slice(0, limit)),
    forget: () => Promise.resolve(),
  };

  it('is done once in a round, even where it stays noted', async () => {
    const worked: string[] = [];
    const work = (_: Postgres, { subscriptionId }: Noted) => {
      worked.push(subscriptionId);
      return Promise.resolve(2);
    };
    expect(await doNoted({ ...stays, work }, postgres, new AbortController().signal)).toBe(500);
    expect(worked).toEqual(noted.map(({ subscriptionId }) => subscriptionId));
  });

  it('is done for the others where it fails for one, and for that one it stays noted', async () => {
    const [broken, worked, forgotten] = ['003', [] as string[], [] as string[]];
    const work = (_: Postgres, { subscriptionId }: Noted) => {
      if (subscriptionId === broken) return Promise.reject(new Error('it took too long'));
      worked.push(subscriptionId);
      return Promise.resolve(2);
    };
    const forget = (_: Postgres, { subscriptionId }: Noted) => Promise.resolve(void forgotten.push(subscriptionId));
    await expect(doNoted({ ...stays, work, forget }, postgres, new AbortController().signal)).rejects.toThrow(
      'it took too long',
    );
    expect([worked.length, forgotten.length]).toEqual([249, 249]);
    expect(forgotten).not.toContain(broken);
  });

  it('is left to the next round where it fails for three: then it fails for all, and each takes as long as a statement may', async () => {
    let tried = 0;
    const work = () => (tried++, Promise.reject(new Error('it took too long')));
    await expect(doNoted({ ...stays, work }, postgres, new AbortController().signal)).rejects.toThrow(
      'it took too long',
    );
    expect(tried).toBe(3);
  });

  it('is not forgotten when the process stops in the middle of it', async () => {
    const stopping = new AbortController();
    const forgotten: Noted[] = [];
    const work = () => {
      stopping.abort();
      return Promise.resolve(1000);
    };
    const forget = (_: Postgres, each: Noted) => Promise.resolve(void forgotten.push(each));
    expect(await doNoted({ ...stays, work, forget }, postgres, stopping.signal)).toBe(1000);
    expect(forgotten).toEqual([]);
  });
});

describe('held deliveries that are too old', () => {
  const running = new AbortController().signal;

  /** @param onPause told of the pauses so far */
  function pausing(onPause: (pauses: number) => void = () => {}) {
    const pauses: number[] = [];
    const pause = (ms: number) => {
      pauses.push(ms);
      onPause(pauses.length);
      return Promise.resolve();
    };
    return { pauses, clock: { now: () => 0, pause } satisfies Clock };
  }

  it('are due a thousand at a time, with a rest for others after each', async () => {
    let left = 2300;
    const { clock, pauses } = pausing();
    const freed = await inPacedBatches(
      (limit) => {
        const count = Math.min(limit, left);
        left -= count;
        return Promise.resolve(count);
      },
      clock,
      running,
    );
    expect({ freed, left, pauses }).toEqual({ freed: 2300, left: 0, pauses: [500, 500] });
  });

  it('do not make a round of recovery last as long as there are any', async () => {
    const { clock, pauses } = pausing();
    expect(await inPacedBatches((limit) => Promise.resolve(limit), clock, running)).toBe(20_000);
    expect(pauses).toHaveLength(20);
  });

  it('are left to the next round when the process stops during the rest', async () => {
    const stopping = new AbortController();
    const { clock } = pausing((pauses) => pauses === 2 && stopping.abort());
    expect(await inPacedBatches((limit) => Promise.resolve(limit), clock, stopping.signal)).toBe(2000);
  });
});

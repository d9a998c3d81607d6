import { describe, expect, it } from 'vitest';
import type { Clock } from '../infra/clock.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { DeliveryQueue, Lane } from './delivery-queue.js';
import type { LaneReport } from './progress-reports.js';
import { QueueNotReached } from './queue-not-reached.js';
import { positionOf, QueuePosition } from './queue-position.service.js';

const now = 1_000_000;
const depths = (due: number, slow: number) =>
  new Map<Lane, number>([
    ['fresh', 0],
    ['due', due],
    ['slow', slow],
  ]);
const report = (lane: Lane, newestTaken: number, oldestUnacknowledged: number | null = null): LaneReport => ({
  lane,
  newestTaken,
  oldestUnacknowledged,
});

/** The state of one lane, as it is seen. */
interface Look {
  depth: number;
  oldest?: string;
}

describe('the time up to which the workers are done with the queue', () => {
  it('is a few seconds ago when the queue is empty: a chunk handed out since may be on its way', () => {
    expect(positionOf([], depths(0, 0), now)).toBe(now - 5000);
  });

  it('is later than that when a worker has taken a chunk since', () => {
    const reports = [report('fresh', now - 30), report('due', now - 10), report('slow', now - 20)];
    expect(positionOf(reports, depths(0, 0), now)).toBe(now - 30);
  });

  it('is that of the newest chunk taken while there is a backlog: the queue is first in, first out', () => {
    expect(positionOf([report('due', 700)], depths(3, 0), now)).toBe(700);
  });

  it('is zero while there is a backlog and no chunk was ever taken', () => {
    expect(positionOf([], depths(3, 0), now)).toBe(0);
  });

  it('is before the oldest chunk that a worker has not acknowledged', () => {
    expect(positionOf([report('due', 700, 400)], depths(0, 0), now)).toBe(399);
  });

  it('is that of the lane that is furthest behind', () => {
    expect(positionOf([report('due', 700), report('slow', 300)], depths(1, 1), now)).toBe(300);
  });

  it.each([
    ['still in the queue at the first', [{ depth: 1 }, { depth: 0 }], 700],
    ['reported as taken at the second', [{ depth: 0 }, { depth: 0, oldest: '400' }], 399],
  ])('is the earlier of two looks: a chunk is not lost that is %s', async (_, looks: Look[], doneUpTo) => {
    let nr = 0;
    const queue = { depth: async (lane: Lane) => (lane === 'due' ? looks[nr]!.depth : 0) } as DeliveryQueue;
    const query = async () => [{ lane: 'due', newest_ms: '700', oldest_ms: looks[nr]!.oldest ?? null }];
    const clock = { pause: async () => void nr++ } as unknown as Clock;
    const postgres = { query } as unknown as Postgres;
    const position = new QueuePosition(queue, postgres, { now: () => now } as LedgerClock, clock);
    expect(await position.findDoneUpTo()).toBe(doneUpTo);
  });

  describe('of which one lane is not reached', () => {
    const findWith = (error: Error, taken: { lane: Lane; newest_ms: string; oldest_ms: null }[]) => {
      const depth = (lane: Lane) => (lane === 'slow' ? Promise.reject(error) : Promise.resolve(0));
      const postgres = { query: () => Promise.resolve(taken) } as unknown as Postgres;
      const clock = { pause: () => Promise.resolve() } as unknown as Clock;
      const ledgerClock = { now: () => now } as LedgerClock;
      return new QueuePosition({ depth } as DeliveryQueue, postgres, ledgerClock, clock).findDoneUpTo();
    };

    it('is that of the newest chunk taken from it: much may be in it', async () => {
      const error = new QueueNotReached('heraut.slow', 0);
      expect(await findWith(error, [])).toBe(0);
      expect(await findWith(error, [{ lane: 'slow', newest_ms: '700', oldest_ms: null }])).toBe(700);
    });

    it('is not known where RabbitMQ is away', async () => {
      await expect(findWith(new Error('away'), [])).rejects.toThrow('away');
    });
  });
});

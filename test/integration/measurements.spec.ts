import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { register } from 'prom-client';
import { Measurements } from '../../src/dispatching/measurements.service.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { measureLedger } from '../../src/ledger/measure.js';
import { OldestUnfinished } from '../../src/ledger/oldest-unfinished.js';
import { measureTroubled } from '../../src/ledger/measure-troubled.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import { InProcessDeliveryQueue } from '../../src/queue/delivery-queue.in-process.js';
import { QueueNotReached } from '../../src/queue/queue-not-reached.js';
import { insertDeliveries } from '../support/insert-deliveries.js';
import { TestLedger } from '../support/ledger.js';
import { stacks } from '../support/stacks.js';

const stopping = new AbortController().signal;

describe.each(stacks)('what is measured of the ledger ($name)', (stack) => {
  let test: TestLedger;
  let unfinished: OldestUnfinished;

  beforeAll(async () => {
    test = await TestLedger.on(stack);
    await test.heartbeat.onApplicationBootstrap();
  });

  afterAll(async () => {
    await test.heartbeat.stop();
    await test.close();
  });

  beforeEach(async () => {
    unfinished = new OldestUnfinished(test.ledgerClock);
    await test.clear();
  });

  type Inserted = Parameters<typeof insertDeliveries>[1];
  const insert = (count: number, parts: Pick<Inserted, 'state' | 'columns'>, subscription = randomUUID()) =>
    insertDeliveries((text, values) => test.sql(text, values), {
      notifications: count,
      subscriptionIds: [subscription],
      ...parts,
    });

  const heldFor = (reason: string) => ({ state: 'held', columns: { held_for: `'${reason}'::held_reason` } }) as const;
  const dueSince = (seconds: number, failures = 0) =>
    ({
      state: 'waiting',
      columns: { next_at: `now() - interval '${seconds} s'`, failures: String(failures) },
    }) as const;
  const queuedSince = (seconds: number) =>
    ({ state: 'queued', columns: { queued_at: `now() - interval '${seconds} s'` } }) as const;

  async function someOfEach(): Promise<void> {
    await insert(2, queuedSince(30));
    await insert(1, { state: 'queued', columns: { next_at: "now() + interval '1 hour'" } }); // in hand
    await insert(1, { state: 'sending', columns: { next_at: "now() + interval '1 hour'" } });
    await insert(3, dueSince(10));
    await insert(4, dueSince(100, 1));
    await insert(5, { state: 'waiting', columns: { next_at: "now() + interval '1 hour'" } });
    await insert(6, heldFor('paused'));
    await insert(2, heldFor('order'));
    await insert(4, { state: 'failed' });
    await insert(1, { state: 'unknown' });
    await insert(9, { state: 'delivered' });
    await insert(9, { state: 'cancelled' });
  }

  it('is exact while there is little', async () => {
    await someOfEach();
    const exactly = (count: number) => ({ count, isEstimate: false });
    const measured = await measureLedger(test.postgres, unfinished);
    expect(measured).toEqual({
      queued: exactly(3),
      sending: exactly(1),
      waiting: exactly(12),
      held: {
        'endpoint-busy': exactly(0),
        'endpoint-parked': exactly(0),
        paused: exactly(6),
        rate: exactly(0),
        order: exactly(2),
      },
      dead: { failed: exactly(4), expired: exactly(0), unknown: exactly(1) },
      due: { first: exactly(3), repeated: exactly(4) },
      oldestDueSeconds: expect.any(Number),
      oldestQueuedSeconds: expect.any(Number),
    });
    expect(measured.oldestDueSeconds).toBeGreaterThanOrEqual(100);
    expect(measured.oldestQueuedSeconds).toBeGreaterThanOrEqual(30);
  });

  it('is zero when there is nothing', async () => {
    const { queued, due, oldestDueSeconds } = await measureLedger(test.postgres, unfinished);
    expect([queued.count, due.first.count, due.repeated.count, oldestDueSeconds]).toEqual([0, 0, 0, 0]);
  });

  it('is right again and again, as deliveries come and go', async () => {
    // A look finds what has become due since shortly before the last one: here, all that is dated in this hour.
    const anHourAgo = test.ledgerClock.now() - 3_600_000;
    unfinished = new OldestUnfinished({ now: () => anHourAgo } as LedgerClock);
    const counts = async () => {
      const { queued, sending, waiting, due, oldestDueSeconds } = await measureLedger(test.postgres, unfinished);
      return [queued, sending, waiting, due.first]
        .map(({ count }) => count)
        .concat(Math.floor(oldestDueSeconds / 1000));
    };
    expect(await counts()).toEqual([0, 0, 0, 0, 0]);
    await insert(2, queuedSince(1));
    await insert(1, { state: 'queued', columns: { next_at: "now() + interval '1 hour'" } }); // in hand
    await insert(3, { state: 'sending', columns: { next_at: "now() + interval '1 hour'" } });
    await insert(4, dueSince(1500));
    await insert(5, { state: 'waiting', columns: { next_at: "now() + interval '1 hour'" } });
    expect(await counts()).toEqual([3, 3, 9, 4, 1]);
    await test.sql(
      `UPDATE delivery SET state = 'delivered', ended_at = now() WHERE next_at < now() OR queued_at < now()`,
    );
    expect(await counts()).toEqual([1, 3, 5, 0, 0]);
    await insert(1, dueSince(5));
    expect(await counts()).toEqual([1, 3, 6, 1, 0]);
  });

  it('is an estimate of what Postgres knows where there is more than is counted, and never less than was counted', async () => {
    await insert(200, dueSince(10));
    await insert(600, dueSince(100, 1));
    await insert(100, heldFor('paused'));
    await insert(300, heldFor('endpoint-parked'));
    await insert(4, { state: 'failed' });
    await insert(2000, { state: 'delivered' });
    await test.sql('ANALYZE delivery');
    const { waiting, due, held, dead } = await measureLedger(test.postgres, unfinished, 50);
    const near = (expected: number, { count, isEstimate }: { count: number; isEstimate: boolean }) =>
      isEstimate && count > expected * 0.7 && count < expected * 1.3;
    expect([waiting, near(800, waiting)]).toEqual([waiting, true]);
    // The oldest 50 tell how many are repeated.
    expect([due, near(800, { ...due.repeated, count: due.first.count + due.repeated.count })]).toEqual([due, true]);
    expect(due.repeated.count).toBeGreaterThan(due.first.count);
    expect([held, near(100, held.paused), near(300, held['endpoint-parked'])]).toEqual([held, true, true]);
    expect((await measureLedger(test.postgres, unfinished, 350)).held.rate).toEqual({ count: 0, isEstimate: true });
    expect(dead.failed).toEqual({ count: 4, isEstimate: false });
    await test.sql(`DELETE FROM delivery`); // as the planner does not know yet
    await insert(60, heldFor('rate'));
    expect((await measureLedger(test.postgres, unfinished, 50)).held.rate.count).toBeGreaterThanOrEqual(50);
  });

  it('names the subscriptions in most trouble, as many as are asked for', async () => {
    const [dead, failing, paused, little, well] = Array.from({ length: 5 }, () => randomUUID());
    await insert(30, { state: 'failed' }, dead);
    await insert(20, { state: 'waiting', columns: { next_at: "now() + interval '1 hour'", failures: '2' } }, failing);
    await insert(10, heldFor('paused'), paused);
    await test.sql('INSERT INTO held_subscription (subscription_id) VALUES ($1)', [paused]);
    await insert(1, { state: 'expired' }, little);
    await insert(50, { state: 'delivered' }, well);
    expect(await measureTroubled(test.postgres, 3)).toEqual([
      { subscriptionId: dead, unsent: 0, dead: 30 },
      { subscriptionId: failing, unsent: 20, dead: 0 },
      { subscriptionId: paused, unsent: 10, dead: 0 },
    ]);
    expect((await measureTroubled(test.postgres, 20)).map(({ subscriptionId }) => subscriptionId)).not.toContain(well);
  });

  describe('as gauges', () => {
    const measurements = (queue = new InProcessDeliveryQueue(randomUUID(), 100), postgres = test.postgres) =>
      new Measurements(postgres, queue, test.heartbeat, test.ledgerClock);
    const run = async ({ tasks }: Measurements) => {
      for (const { run } of tasks) await run(stopping);
    };

    async function valueOf(name: string, labels: Record<string, string>): Promise<number | undefined> {
      const { values } = await register.getSingleMetric(name)!.get();
      return values.find((one) => Object.entries(labels).every(([label, value]) => one.labels[label] === value))?.value;
    }

    it('are read by a scrape without a statement', async () => {
      await someOfEach();
      const queue = new InProcessDeliveryQueue(randomUUID(), 100);
      await queue.consume('due', 0, () => Promise.resolve());
      await queue.publish('due', { catalogueVersion: 0, queuedAt: 0, deliveries: [] });
      await test.sql('ANALYZE delivery'); // the embedded database knows sizes from that, or from VACUUM
      await run(measurements(queue));
      expect(await valueOf('heraut_backlog_deliveries', { state: 'held' })).toBe(8);
      expect(await valueOf('heraut_held_deliveries', { reason: 'paused' })).toBe(6);
      expect(await valueOf('heraut_due_deliveries', { lane: 'slow' })).toBe(4);
      expect(await valueOf('heraut_dead_letters', { state: 'failed' })).toBe(4);
      expect(await valueOf('heraut_counts_estimated', { of: 'held for paused' })).toBe(0);
      expect(await valueOf('heraut_oldest_delivery_seconds', { state: 'due' })).toBeGreaterThanOrEqual(100);
      expect(await valueOf('heraut_oldest_delivery_seconds', { state: 'queued' })).toBeGreaterThanOrEqual(30);
      expect(await valueOf('heraut_queue_messages', { lane: 'due' })).toBe(1);
      expect(await valueOf('heraut_queue_age_seconds', { lane: 'due' })).toBeGreaterThanOrEqual(30);
      expect(await valueOf('heraut_queue_age_seconds', { lane: 'fresh' })).toBe(0);
      expect(await valueOf('heraut_role_processes', { role: 'dispatcher' })).toBe(1);
      const today = new Date().toISOString().slice(0, 10);
      expect(await valueOf('heraut_ledger_bytes', { day: today })).toBeGreaterThan(8192);
      expect(await valueOf('heraut_ledger_bytes', { day: 'rest' })).toBeGreaterThan(8192);
    });

    it('are gone when they cannot be measured, and only those', async () => {
      await insert(1, { state: 'failed' });
      const queue = new InProcessDeliveryQueue(randomUUID(), 100);
      queue.depth = () => Promise.reject(new Error('the queue is away'));
      const { tasks } = measurements(queue);
      const failed: string[] = [];
      for (const { name, run } of tasks) await run(stopping).catch(() => failed.push(name));
      expect(failed).toEqual(['measure-queue']);
      expect(await valueOf('heraut_queue_messages', { lane: 'due' })).toBeUndefined();
      expect(await valueOf('heraut_dead_letters', { state: 'failed' })).toBe(1);
    });

    it('of a lane that is not reached are gone, which is a failure once it has gone on for a minute', async () => {
      const queue = new InProcessDeliveryQueue(randomUUID(), 100);
      await run(measurements(queue));
      let forMs = 59_999;
      vi.spyOn(queue, 'depth').mockImplementation((lane) =>
        lane === 'slow' ? Promise.reject(new QueueNotReached('heraut.slow', forMs)) : Promise.resolve(3),
      );
      await run(measurements(queue));
      const found = () => Promise.all(['due', 'slow'].map((lane) => valueOf('heraut_queue_messages', { lane })));
      expect(await found()).toEqual([3, undefined]);
      forMs = 60_000;
      await expect(run(measurements(queue))).rejects.toThrow('heraut.slow seems to be empty');
      expect(await found()).toEqual([undefined, undefined]);
    });

    it('tell how far the replays are that have not ended', async () => {
      const replay = (kind: string, state: string, counted: number, found: number) =>
        test.sql(
          `INSERT INTO replay (id, kind, selection, states, only_missed, state, counted, is_count_whole, after_notification,
             after_subscription, before_id, found, done, ended_at)
           VALUES ($1, $2, '{}', '{}', true, $3, $4, true, $1, $1, $1, $5, $5,
             CASE WHEN $3 IN ('scheduled', 'running', 'paused') THEN NULL ELSE now() END)`,
          [randomUUID(), kind, state, counted, found],
        );
      await replay('replay', 'running', 100, 30);
      await replay('replay', 'running', 10, 12); // more came than were counted
      await replay('replay', 'paused', 50, 5);
      await replay('replay', 'done', 1000, 1000);
      await replay('close', 'scheduled', 7, 0);
      const progressOf = async (kind: string) => [
        ...(await Promise.all(
          ['scheduled', 'running', 'paused'].map((state) => valueOf('heraut_replays', { kind, state })),
        )),
        ...(await Promise.all(
          ['done', 'left'].map((progress) => valueOf('heraut_replay_deliveries', { kind, progress })),
        )),
      ];
      await run(measurements());
      expect(await progressOf('replay')).toEqual([0, 2, 1, 47, 115]);
      expect(await progressOf('close')).toEqual([1, 0, 0, 0, 7]);
      expect(await progressOf('cancel')).toEqual([0, 0, 0, 0, 0]);
      expect(await valueOf('heraut_replays', { state: 'done' })).toBeUndefined();
      await test.sql('DELETE FROM replay');
      await run(measurements());
      expect(await progressOf('replay')).toEqual([0, 0, 0, 0, 0]);
    });

    it('of subscriptions that are well again are gone', async () => {
      const subscription = randomUUID();
      await insert(3, { state: 'failed' }, subscription);
      await run(measurements());
      expect(await valueOf('heraut_subscription_dead_letters', { subscription })).toBe(3);
      await test.clear();
      await run(measurements());
      expect(await valueOf('heraut_subscription_dead_letters', { subscription })).toBeUndefined();
    });

    it('how late retries are handed out is observed, and of retries only', async () => {
      const observed = async () => {
        const { values } = await register.getSingleMetric('heraut_retry_lateness_seconds')!.get();
        const value = (end: string) =>
          (values as { metricName?: string; value: number }[]).find(
            ({ metricName }) => metricName === `heraut_retry_lateness_seconds_${end}`,
          )!.value;
        return [value('count'), value('sum')] as const;
      };
      const [count, sum] = await observed();
      await insert(1, dueSince(50));
      await insert(2, dueSince(100, 1));
      expect((await handOutDue(test.postgres, 512, null)).deliveries).toHaveLength(3);
      const [countAfter, sumAfter] = await observed();
      expect(countAfter - count).toBe(2);
      expect(sumAfter - sum).toBeGreaterThan(199.9); // 200.04 + 0.1 - 0.1 may be a little less in floats
      expect(sumAfter - sum).toBeLessThan(250);
    });
  });
});

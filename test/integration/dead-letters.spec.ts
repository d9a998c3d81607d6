import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { recoveryRules } from '../../src/dispatching/recovery-rules.js';
import { SendingEnded } from '../../src/dispatching/sending-ended.js';
import { systemClock } from '../../src/infra/clock.js';
import { noteEndings, subscriptionDisabled, type Ending } from '../../src/ledger/end-of-subscription.js';
import { sendingEnded } from '../../src/ledger/end-sending.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import type { OperationalEvent } from '../../src/operational-events/operational-events.service.js';
import type { QueuePosition } from '../../src/queue/queue-position.service.js';
import { attemptNumber, delivered, ended, retried, TestLedger } from '../support/ledger.js';
import { LookClock, lookForLong } from '../support/look-for-long.js';
import { real } from '../support/stacks.js';

Logger.overrideLogger(false);

/** The time of a claim is over then, by five seconds. */
const overMs = 30_000;
const running = new AbortController().signal;

describe('dead letters', () => {
  let test: TestLedger;
  let reported: OperationalEvent[];

  beforeAll(async () => {
    test = await TestLedger.on(real);
    vi.spyOn(test.events, 'report').mockImplementation((event) => void reported.push(event));
  });
  beforeEach(async () => {
    await test.clear();
    reported = [];
  });
  afterAll(() => test.close());

  async function apply(
    name: string,
    stopping = running,
    sending = new SendingEnded(test.postgres, test.events, { now: Date.now } as LedgerClock, systemClock),
  ): Promise<number> {
    const rules = recoveryRules(
      test.postgres,
      {} as QueuePosition,
      test.events,
      sending,
      { now: Date.now } as LedgerClock,
      systemClock,
    );
    return rules.find((rule) => rule.name === name)!.run(stopping);
  }

  /** A subscription that ends with that many deliveries waiting for it. */
  async function ending(count: number, state: Ending): Promise<string> {
    const id = randomUUID();
    await test.sql(
      `INSERT INTO delivery (notification_id, subscription_id, state, next_at)
       SELECT notification_id, $2, 'waiting', now() + interval '1 day' FROM unnest($1::uuid[]) AS n (notification_id)`,
      [Array.from({ length: count }, () => uuidv7()), id],
    );
    await test.postgres.dataSource.transaction((manager) => noteEndings(manager, [id], state, 7));
    return id;
  }

  const dead = (subscriptionId: string | null, state: string, reason: string | null, count: number) => ({
    event: 'delivery.dead',
    subscriptionId,
    state,
    reason,
    count,
  });

  it('are reported when a result made them, with what they died of, and nothing else is', async () => {
    const [failed, expired, unknown, waiting, cancelled, done] = await test.accept(6);
    await test.claims.claim(unknown!, 10_000);
    await Promise.all([
      test.settlements.settle(ended(failed!)),
      test.settlements.settle(ended(expired!, 'expired')),
      test.settlements.settle({ ...unknown!, state: 'unknown', attempt: attemptNumber(1), from: 'sending' }),
      test.settlements.settle(retried(waiting!)),
      test.settlements.settle(ended(cancelled!, 'cancelled')),
      test.settlements.settle(delivered(done!)),
    ]);
    expect(reported).toHaveLength(3);
    const { notificationId } = failed!;
    expect(reported).toEqual(
      expect.arrayContaining([
        { ...dead(failed!.subscriptionId, 'failed', 'HTTP 503', 1), notificationId },
        { ...dead(expired!.subscriptionId, 'expired', null, 1), notificationId },
        { ...dead(unknown!.subscriptionId, 'unknown', 'HTTP 503', 1), notificationId },
      ]),
    );
  });

  it('are not reported by a result that came too late to change anything, nor twice', async () => {
    const [repeated, stale, overtaken] = await test.accept(3);
    await test.settlements.settle(ended(repeated!));
    await test.settlements.settle(delivered(overtaken!));
    reported = [];
    await test.settlements.settle(ended(repeated!));
    await test.settlements.settle(ended({ ...stale!, generation: 0 }));
    await test.settlements.settle(ended(overtaken!, 'expired'));
    expect(reported).toEqual([]);
  });

  it('say why they were held for too long, if that is what they died of', async () => {
    const [delivery] = await test.accept();
    await test.sql(`UPDATE delivery SET last_error = 'held for 3 days'`);
    await test.settlements.settle(ended(delivery!, 'expired'));
    expect(reported).toMatchObject([dead(delivery!.subscriptionId, 'expired', 'held for 3 days', 1)]);
  });

  it('of a subscription that are written together are one event', async () => {
    const subscriptionId = randomUUID();
    const deliveries = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const [delivery] = await test.accept();
        await test.sql('UPDATE delivery SET subscription_id = $1 WHERE subscription_id = $2', [
          subscriptionId,
          delivery!.subscriptionId,
        ]);
        return { ...delivery!, subscriptionId };
      }),
    );
    await Promise.all(deliveries.map((each) => test.settlements.settle(ended(each, 'expired'))));
    expect(reported.length).toBeLessThanOrEqual(2); // the first may be written alone
    expect(reported.reduce((sum, event) => sum + ('count' in event ? event.count : 0), 0)).toBe(200);
    expect(reported.at(-1)).toMatchObject({ subscriptionId, notificationId: null });
  });

  it('of a subscription that was disabled are one event with their count', async () => {
    const disabled = await ending(2500, 'failed');
    await ending(10, 'cancelled');
    await ending(0, 'failed');
    expect(await apply('subscription-ended')).toBe(2510);
    expect(reported).toEqual([{ ...dead(disabled, 'failed', subscriptionDisabled, 2500), notificationId: null }]);
    expect(await apply('subscription-ended')).toBe(0);
    expect(reported).toHaveLength(1);
  });

  it('of a subscription that was disabled are reported as far as a dispatcher came before it stopped', async () => {
    const disabled = await ending(1500, 'failed');
    expect(await apply('subscription-ended', AbortSignal.abort())).toBe(1000);
    expect(await apply('subscription-ended')).toBe(500);
    expect(reported).toMatchObject([1000, 500].map((count) => dead(disabled, 'failed', subscriptionDisabled, count)));
  });

  it('are reported when a rule made them, because their worker did not say what came of the call', async () => {
    const clock = new LookClock();
    const sending = new SendingEnded(test.postgres, test.events, { now: Date.now } as LedgerClock, clock);
    await lookForLong(sending, clock);
    const [delivery] = await test.accept();
    await test.claims.claim(delivery!, 10_000);
    await test.age([delivery!], overMs);
    await (await test.startProcess()).witness();
    await apply('sending-ended', running, sending);
    expect(reported).toEqual([
      { ...dead(delivery!.subscriptionId, 'unknown', sendingEnded, 1), notificationId: delivery!.notificationId },
    ]);
  });
});

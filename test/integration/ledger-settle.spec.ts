import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { cancel } from '../../src/ledger/cancel.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import type { Delivery } from '../../src/ledger/delivery.js';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import type { Statement, Values } from '../../src/infra/postgres/statement.js';
import { dayOfId, partitionOf, timeOfId } from '../../src/ledger/partitions.js';
import { Settlements, type Settlement } from '../../src/ledger/settle.service.js';
import type { OperationalEvents } from '../../src/operational-events/operational-events.service.js';
import { attemptNumber, delivered, ended, retried, TestLedger } from '../support/ledger.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

describe.each(stacks)('settling on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let test: TestLedger;

  beforeAll(async () => {
    prepared = await stack.prepare();
    test = await TestLedger.open(prepared.settings);
  });
  afterAll(async () => {
    await test.close();
    await prepared.release();
  });

  const accept = async (): Promise<Delivery> => (await test.accept())[0]!;
  const settle = (settlement: Settlement) => test.settlements.settle(settlement);

  /** The same delivery after it waited and was handed out once more. */
  async function handOutAgain(delivery: Delivery): Promise<Delivery> {
    await test.age([delivery], 3_600_000);
    const { deliveries } = await handOutDue(test.postgres, 10_000, null);
    return deliveries.find(({ notificationId }) => notificationId === delivery.notificationId)!;
  }

  it('ends a delivery that arrived, and keeps the attempt', async () => {
    const delivery = await accept();
    await settle(delivered(delivery));
    expect(await test.row(delivery)).toEqual({
      state: 'delivered',
      generation: 1,
      attempts: 1,
      failures: 0,
      replays: 0,
      process: null,
      last_status: 204,
      last_error: null,
      has_ended: true,
      due_in_ms: null,
    });
    expect(await test.attempts(delivery)).toEqual([
      {
        number: 1,
        generation: 1,
        started_at: new Date(1_763_625_601_000),
        duration_ms: 12,
        connect_ms: 3,
        first_byte_ms: 12,
        status: 204,
        error: null,
        details: null,
      },
    ]);
  });

  it('keeps with a failed attempt what the receiver answered, whatever that was', async () => {
    const delivery = await accept();
    const headers = { server: 'n"g\\inx', location: '/é' };
    const details = { address: '[::1]:443', headers, body: '{"title": "💥 \\u0000"}\n'.repeat(100) };
    const attempt = attemptNumber(1, { connectMs: null, firstByteMs: null, details });
    await settle({ ...retried(delivery), attempt });
    expect(await test.attempts(delivery)).toMatchObject([{ connect_ms: null, first_byte_ms: null, details }]);
  });

  it('lets a delivery that failed wait as long as it should', async () => {
    const delivery = await accept();
    await settle(retried(delivery, 24_999.2));
    const row = await test.row(delivery);
    expect(row).toMatchObject({ state: 'waiting', attempts: 1, failures: 1, last_status: 503, last_error: 'HTTP 503' });
    expect(row!.has_ended).toBe(false);
    expect(row!.due_in_ms).toBeGreaterThan(15_000);
    expect(row!.due_in_ms).toBeLessThanOrEqual(25_000);
  });

  it.each(['failed', 'expired', 'cancelled'] as const)('ends a delivery as %s', async (state) => {
    const delivery = await accept();
    await settle(ended(delivery, state));
    const counted = state === 'failed' ? 1 : 0;
    expect(await test.row(delivery)).toMatchObject({
      state,
      has_ended: true,
      due_in_ms: null,
      attempts: counted,
      failures: counted,
    });
  });

  it('counts nothing for a delivery that was not sent', async () => {
    const delivery = await accept();
    await test.holds.hold(delivery, 'endpoint-busy');
    expect(await test.row(delivery)).toMatchObject({ state: 'held', attempts: 0, failures: 0, last_status: null });
    expect(await test.attempts(delivery)).toEqual([]);
  });

  it('changes no row when a result is written twice', async () => {
    const [success, failure] = [await accept(), await accept()];
    for (let times = 0; times < 3; times++) {
      await settle(delivered(success));
      await settle(retried(failure));
    }
    expect(await test.row(success)).toMatchObject({ state: 'delivered', attempts: 1, failures: 0 });
    expect(await test.row(failure)).toMatchObject({ state: 'waiting', attempts: 1, failures: 1 });
    expect(await test.attempts(success)).toHaveLength(1);
    expect(await test.attempts(failure)).toHaveLength(1);
  });

  it('keeps one attempt when its outcome is settled again under a newer generation', async () => {
    const delivery = await accept();
    await settle(retried(delivery, 0));
    const again = await handOutAgain(delivery);
    await settle({ ...ended(again), attempt: attemptNumber(2) });
    await settle({ ...ended({ ...again, generation: 9 }), attempt: attemptNumber(2) });
    expect((await test.attempts(delivery)).map(({ number }) => number)).toEqual([1, 2]);
  });

  it('keeps two calls with the same number that were really made', async () => {
    const delivery = await accept();
    await settle({ ...retried(delivery), attempt: attemptNumber(1, { startedAt: 1_763_625_600_000 }) });
    await settle({ ...retried(delivery), attempt: attemptNumber(1, { startedAt: 1_763_625_600_001 }) });
    expect(await test.attempts(delivery)).toHaveLength(2);
  });

  it('does not let an older result change a delivery that was handed out since, but keeps its attempt', async () => {
    const delivery = await accept();
    await settle(retried(delivery, 0));
    const again = await handOutAgain(delivery);
    expect(again).toMatchObject({ generation: 2, attempts: 1, failures: 1 });
    await settle({ ...ended(delivery), attempt: attemptNumber(1, { startedAt: 5 }) });
    expect(await test.row(delivery)).toMatchObject({ state: 'queued', generation: 2, failures: 1 });
    expect(await test.attempts(delivery)).toHaveLength(2);
  });

  it('accepts a success of any generation: delivered is delivered', async () => {
    const delivery = await accept();
    await settle(retried(delivery, 0));
    await handOutAgain(delivery);
    await settle(delivered(delivery));
    expect(await test.row(delivery)).toMatchObject({
      state: 'delivered',
      generation: 2,
      has_ended: true,
      due_in_ms: null,
    });
  });

  it.each(['failed', 'expired', 'cancelled'] as const)('accepts a success after it had ended as %s', async (state) => {
    const delivery = await accept();
    await settle(ended(delivery, state));
    await settle(delivered(delivery, 2));
    expect(await test.row(delivery)).toMatchObject({
      state: 'delivered',
      attempts: 2,
      last_status: 204,
      last_error: null,
    });
  });

  it('never changes a success', async () => {
    const delivery = await accept();
    await settle(delivered(delivery));
    for (const late of [retried(delivery, 0, 2), ended(delivery), ended(delivery, 'cancelled')]) await settle(late);
    expect(await test.row(delivery)).toMatchObject({
      state: 'delivered',
      last_status: 204,
      due_in_ms: null,
      failures: 0,
    });
  });

  it.each(['failed', 'expired', 'cancelled'] as const)('does not change a delivery that ended as %s', async (state) => {
    const delivery = await accept();
    await settle(ended(delivery, state));
    await settle(retried(delivery, 0, 2));
    await test.holds.hold(delivery, 'endpoint-busy');
    expect(await test.row(delivery)).toMatchObject({ state, has_ended: true, due_in_ms: null });
  });

  it('does not change a delivery that an operator cancelled meanwhile', async () => {
    const delivery = await accept();
    expect(await cancel(test.postgres, delivery)).toBe('cancelled');
    await settle(retried(delivery, 0));
    expect(await test.row(delivery)).toMatchObject({ state: 'cancelled', due_in_ms: null });
  });

  it('writes many results together, each where it belongs', async () => {
    const deliveries = await test.accept(1200);
    await Promise.all(deliveries.map((each, nr) => settle([delivered(each), retried(each), ended(each)][nr % 3]!)));
    const rows = await test.sql<{ state: string; count: string }>(
      'SELECT state, count(*) FROM delivery WHERE notification_id = $1 GROUP BY state ORDER BY state::text',
      [deliveries[0]!.notificationId],
    );
    expect(rows).toEqual(['delivered', 'failed', 'waiting'].map((state) => ({ state, count: '400' })));
    expect(await test.state(deliveries[4]!)).toBe('waiting');
  });

  it.each([
    ['first', (results: Settlement[]) => results],
    ['last', (results: Settlement[]) => results.toReversed()],
  ])('loses no success to a failure of the same delivery in the same batch, be it %s', async (_where, order) => {
    const all = await Promise.all(Array.from({ length: 20 }, accept));
    await Promise.all(
      all.flatMap((each) => order([delivered(each, 2), retried(each, 0, 1), ended(each, 'cancelled')]).map(settle)),
    );
    for (const each of all) {
      expect(await test.state(each)).toBe('delivered');
      expect((await test.attempts(each)).map(({ number }) => number)).toEqual([1, 2]);
    }
  });

  it('writes the others when one result cannot be stored', async () => {
    const [good, bad] = [await accept(), await accept()];
    const results = await Promise.allSettled([
      settle(delivered(good)),
      settle({ ...retried(bad), attempt: attemptNumber(1, { error: 'a\0b' }) }),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(await test.state(good)).toBe('delivered');
    expect(await test.state(bad)).toBe('queued');
  });

  it('reports the dead letters of one day although the results of another day cannot be written', async () => {
    const today = await accept();
    const tomorrow = { ...today, notificationId: uuidv7({ msecs: timeOfId(today.notificationId) + 86_400_000 }) };
    const broken = Object.create(test.postgres, {
      query: {
        value: (one: Statement, values: Values) =>
          one.text.includes(partitionOf('delivery', dayOfId(tomorrow.notificationId)))
            ? Promise.reject(new Error('the connection broke'))
            : test.postgres.query(one, values),
      },
    }) as Postgres;
    const reported: string[] = [];
    const events = {
      reportDead: (dead: readonly Delivery[]) => reported.push(...dead.map(({ notificationId }) => notificationId)),
    } as unknown as OperationalEvents;
    const settlements = new Settlements(broken, events);
    const asked = [today, tomorrow].map((each) => settlements.settle(ended(each)));
    const repeated = { status: 'rejected', reason: new Error('the connection broke') };
    expect(await Promise.allSettled(asked)).toEqual([repeated, repeated]);
    expect(reported).toEqual([today.notificationId]);
    expect(await test.state(today)).toBe('failed');
  });

  it('ignores a result of a delivery that does not exist', async () => {
    const [delivery] = [await accept()];
    await settle(delivered({ ...delivery, subscriptionId: randomUUID() }));
    await settle(ended({ ...delivery, notificationId: uuidv7(), generation: 3 }));
    expect(await test.state(delivery)).toBe('queued');
  });

  it('is drained when everything given so far is written', async () => {
    const deliveries = await test.accept(50);
    const all = deliveries.map((each) => settle(delivered(each)));
    await test.settlements.drain();
    for (const each of deliveries) expect(await test.state(each)).toBe('delivered');
    await Promise.all(all);
  });
});

describe('settling in two processes', () => {
  it('gets through when both settle the same deliveries in another order', async () => {
    const prepared = await stacks.find(({ name }) => name === 'real')!.prepare();
    const [one, other] = [await TestLedger.open(prepared.settings), await TestLedger.open(prepared.settings)];
    for (let round = 0; round < 2; round++) {
      const deliveries = await one.accept(300);
      await Promise.all([
        ...deliveries.map((each) => one.settlements.settle(delivered(each))),
        ...deliveries.toReversed().map((each) => other.settlements.settle(retried(each))),
      ]);
      const rows = await one.sql('SELECT FROM delivery WHERE notification_id = $1 AND state = $2', [
        deliveries[0]!.notificationId,
        'delivered',
      ]);
      expect(rows).toHaveLength(300);
    }
    await Promise.all([one.close(), other.close()]);
    await prepared.release();
  });
});

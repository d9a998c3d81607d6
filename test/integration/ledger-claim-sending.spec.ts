import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { Delivery } from '../../src/ledger/delivery.js';
import { unknownCounted } from '../../src/ledger/ledger.counters.js';
import { attemptNumber, delivered, ended, retried, TestLedger } from '../support/ledger.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

describe.each(stacks)('the right to send, given once, on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let test: TestLedger;

  beforeAll(async () => {
    prepared = await stack.prepare();
    test = await TestLedger.open(prepared.settings);
  });
  beforeEach(() => live('1 hour'));
  afterEach(() => test.clear());
  afterAll(async () => {
    await test.close();
    await prepared.release();
  });

  const unknown = async () => (await unknownCounted.get()).values[0]!.value;

  /** How long the process that claims counts as alive. */
  const live = async (interval: string): Promise<void> => {
    await test.sql(
      `INSERT INTO process (id, roles, expires_at) VALUES ($1, '{worker}', now() + $2::interval)
       ON CONFLICT (id) DO UPDATE SET expires_at = EXCLUDED.expires_at`,
      [test.heartbeat.processId, interval],
    );
  };
  const accept = async (): Promise<Delivery> => (await test.accept())[0]!;

  it('goes to one of many that ask for it at the same time', async () => {
    const delivery = await accept();
    const answers = await Promise.all(Array.from({ length: 50 }, () => test.ledger.claimSending(delivery)));
    expect(answers.filter((isMine) => isMine)).toHaveLength(1);
    expect(await test.ledger.claimSending(delivery)).toBe(false);
    expect(await test.row(delivery)).toMatchObject({ state: 'sending', owner: test.heartbeat.processId, attempts: 0 });
  });

  it('goes to the generation that was handed out last, also when an older one asks together with it', async () => {
    const old = await accept();
    await test.leases.putBack([old], 0);
    await test.leases.claimDue(10, null);
    const current = { ...old, generation: 2 };
    expect(await Promise.all([old, current, old].map((each) => test.ledger.claimSending(each)))).toEqual([
      false,
      true,
      false,
    ]);
  });

  it.each(['waiting', 'held', 'cancelled', 'failed', 'expired', 'unknown', 'delivered'])(
    'is not given for a delivery that is %s',
    async (state) => {
      const delivery = await accept();
      await test.sql('UPDATE delivery SET state = $1 WHERE notification_id = $2', [state, delivery.notificationId]);
      expect(await test.ledger.claimSending(delivery)).toBe(false);
      expect(await test.state(delivery)).toBe(state);
    },
  );

  it('is not touched by what others say who found the same delivery queued', async () => {
    const delivery = await accept();
    expect(await test.ledger.claimSending(delivery)).toBe(true);
    await test.ledger.settle({ ...delivery, state: 'held', delayMs: 0, attempt: null });
    await test.ledger.settle(retried(delivery, 0));
    for (const state of ['failed', 'expired', 'cancelled'] as const) await test.ledger.settle(ended(delivery, state));
    await test.leases.putBack([delivery], 0);
    await test.leases.shortenLease([delivery], 0);
    await test.leases.own([delivery], 'somebody else');
    await test.leases.freeOrphaned();
    await test.leases.endLeases(Date.now() + 3_600_000, 100);
    await test.leases.freeQueued(Date.now() + 3_600_000);
    expect(await test.row(delivery)).toMatchObject({ state: 'sending', owner: test.heartbeat.processId, attempts: 0 });
    expect((await test.leases.claimDue(100, null)).deliveries).toEqual([]);
  });

  it.each(['waiting', 'held', 'failed', 'unknown'] as const)('ends with what its owner says: %s', async (state) => {
    const delivery = await accept();
    await test.ledger.claimSending(delivery);
    const result = { ...delivery, isClaimed: true, attempt: state === 'held' ? null : attemptNumber(1) };
    await test.ledger.settle(
      state === 'waiting' || state === 'held' ? { ...result, state, delayMs: 0 } : { ...result, state },
    );
    expect(await test.row(delivery)).toMatchObject({
      state,
      owner: null,
      has_ended: state === 'failed' || state === 'unknown',
    });
  });

  it('says nothing about a delivery of which it was not claimed', async () => {
    const delivery = await accept();
    await test.ledger.settle({ ...retried(delivery, 0), isClaimed: true });
    expect(await test.state(delivery)).toBe('queued');
  });

  it('becomes unknown when its time is over, and delivered if a success is told all the same', async () => {
    const delivery = await accept();
    await test.ledger.claimSending(delivery);
    expect(await test.leases.endSending()).toEqual([]);
    await test.age([delivery], 3_600_000);
    const { notificationId, subscriptionId } = delivery;
    expect(await test.leases.endSending()).toEqual([{ notificationId, subscriptionId }]);
    expect(await test.row(delivery)).toMatchObject({ state: 'unknown', owner: null, has_ended: true, due_in_ms: null });
    await test.ledger.settle({ ...retried(delivery, 0), isClaimed: true });
    expect(await test.state(delivery)).toBe('unknown');
    await test.ledger.settle({ ...delivered(delivery), isClaimed: true });
    expect(await test.state(delivery)).toBe('delivered');
  });

  it('is counted as unknown once, whoever says so', async () => {
    const before = await unknown();
    const late = await accept();
    await test.ledger.claimSending(late);
    await test.age([late], 3_600_000);
    await test.leases.endSending();
    await test.ledger.settle({ ...late, state: 'unknown', attempt: attemptNumber(1), isClaimed: true });
    expect(await unknown()).toBe(before + 1);
    const reported = await accept();
    await test.ledger.claimSending(reported);
    await test.ledger.settle({ ...reported, state: 'unknown', attempt: attemptNumber(1), isClaimed: true });
    expect(await unknown()).toBe(before + 2);
  });

  it('becomes unknown when its process is no more', async () => {
    const delivery = await accept();
    await test.ledger.claimSending(delivery);
    await live('-1 ms');
    expect(await test.leases.endSending()).toHaveLength(1);
    expect(await test.state(delivery)).toBe('unknown');
  });

  it('is given once more when an operator has an unknown delivery sent again', async () => {
    const delivery = await accept();
    await test.ledger.claimSending(delivery);
    await test.age([delivery], 3_600_000);
    await test.leases.endSending();
    expect(await test.ledger.retryNow(delivery)).toBe('retried');
    const { deliveries } = await test.leases.claimDue(10, null);
    expect(deliveries).toMatchObject([{ replays: 1, failures: 0 }]);
    expect(await test.ledger.claimSending(delivery)).toBe(false);
    expect(await test.ledger.claimSending(deliveries[0]!)).toBe(true);
  });
});

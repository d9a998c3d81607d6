import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { v7 as uuidv7 } from 'uuid';
import type { Postgres } from '../../src/infra/postgres/postgres.js';
import type { Statement, Values } from '../../src/infra/postgres/statement.js';
import { cancel } from '../../src/ledger/cancel.js';
import { SendingClaims } from '../../src/ledger/claim-sending.service.js';
import { anyUndecided, endSending } from '../../src/ledger/end-sending.js';
import { freeAfterLease } from '../../src/ledger/free-after-lease.js';
import { freeOfDeadProcesses } from '../../src/ledger/free-of-dead-processes.js';
import { freeQueuedBefore } from '../../src/ledger/free-queued-before.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { partitionOf, timeOfId } from '../../src/ledger/partitions.js';
import { putBack } from '../../src/ledger/put-back.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import type { Delivery } from '../../src/ledger/delivery.js';
import { unknownCounted } from '../../src/ledger/ledger.counters.js';
import type { Heartbeat } from '../../src/liveness/heartbeat.service.js';
import { attemptNumber, delivered, ended, retried, TestLedger } from '../support/ledger.js';
import { stacks } from '../support/stacks.js';

Logger.overrideLogger(false);
const timeoutMs = 10_000;

describe.each(stacks)('the right to send, given once, on the $name stack', (stack) => {
  let test: TestLedger;

  beforeAll(async () => {
    test = await TestLedger.on(stack);
  });
  beforeEach(() => live('1 hour'));
  afterEach(async () => {
    await test.clear();
    await test.sql('DELETE FROM process');
  });
  afterAll(() => test.close());

  const unknown = async () => (await unknownCounted.get()).values[0]!.value;

  /** How long the process that claims counts as alive. */
  const live = async (interval: string): Promise<void> => {
    await test.sql(
      `INSERT INTO process (id, roles, expires_at, steady_since)
       VALUES ($1, '{worker}', now() + $2::interval, now() - interval '1 hour') ON CONFLICT (id) DO UPDATE SET expires_at = EXCLUDED.expires_at`,
      [test.heartbeat.processId, interval],
    );
  };
  const claim = (delivery: Delivery) => test.claims.claim(delivery, timeoutMs);
  const accept = async (): Promise<Delivery> => (await test.accept())[0]!;

  it('goes to one of many that ask for it at the same time', async () => {
    const delivery = await accept();
    const answers = await Promise.all(Array.from({ length: 50 }, () => claim(delivery)));
    expect(answers.filter((isMine) => isMine)).toHaveLength(1);
    expect(await claim(delivery)).toBe(false);
    expect(await test.row(delivery)).toMatchObject({
      state: 'sending',
      process: test.heartbeat.processId,
      attempts: 0,
    });
  });

  it('is granted for one day although it cannot be asked for another that was asked for together with it', async () => {
    const [today, other] = [await accept(), await accept()];
    const atMidnight = Math.floor(timeOfId(today.notificationId) / 86_400_000) * 86_400_000;
    const tomorrow = { ...other, notificationId: uuidv7({ msecs: atMidnight + 1.5 * 86_400_000 }) };
    const dropped = { ...other, notificationId: uuidv7({ msecs: atMidnight - 1000 * 86_400_000 }) };
    const broken = Object.create(test.postgres, {
      query: {
        value: (one: Statement, values: Values) =>
          one.text.includes(partitionOf('delivery', atMidnight / 86_400_000 + 1))
            ? Promise.reject(new Error('the connection broke'))
            : test.postgres.query(one, values),
      },
    }) as Postgres;
    const claims = new SendingClaims(broken, test.heartbeat);
    const answers = await Promise.allSettled([today, tomorrow, dropped].map((each) => claims.claim(each, timeoutMs)));
    expect(answers).toEqual([
      { status: 'fulfilled', value: true },
      { status: 'rejected', reason: new Error('the connection broke') },
      { status: 'fulfilled', value: false },
    ]);
  });

  describe('where answers of Postgres are lost', () => {
    /** Of the statements to come: whether their answer is lost, and whether they do not even reach Postgres. */
    let losses: ('answer' | 'statement')[];
    let process: SendingClaims;
    const ask = (delivery: Delivery) => process.claim(delivery, timeoutMs).catch(() => 'lost');

    beforeEach(() => {
      losses = [];
      const query = async (one: Statement, values: Values) => {
        const loss = losses.shift();
        const rows = loss === 'statement' ? undefined : await test.postgres.query(one, values);
        if (loss) throw new Error('the connection broke');
        return rows;
      };
      const unreliable = Object.create(test.postgres, { query: { value: query } }) as Postgres;
      process = new SendingClaims(unreliable, test.heartbeat);
    });

    it.each([[['answer']], [['answer', 'statement', 'answer']], [['statement', 'answer']]] as const)(
      'goes to the process that has it, once, when that asks again: %j',
      async (lost) => {
        const delivery = await accept();
        losses.push(...lost);
        for (const _ of lost) expect(await ask(delivery)).toBe('lost');
        await test.age([delivery], timeoutMs);
        const elsewhere = new SendingClaims(test.postgres, { processId: (await test.startProcess()).id } as Heartbeat);
        expect(await elsewhere.claim(delivery, timeoutMs)).toBe(false);
        expect(await ask(delivery)).toBe(true);
        // Its time begins anew, and nobody else gets it.
        expect((await test.row(delivery))!.due_in_ms).toBeGreaterThan(timeoutMs);
        expect([await ask(delivery), await elsewhere.claim(delivery, timeoutMs)]).toEqual([false, false]);
        losses.push('answer');
        expect([await ask(delivery), await ask(delivery)]).toEqual(['lost', false]);
      },
    );

    it('goes to one of two messages of a delivery that both did not hear of it', async () => {
      const delivery = await accept();
      losses.push('answer', 'answer');
      const both = () => Promise.all([ask(delivery), ask(delivery)]);
      expect(await both()).toEqual(['lost', 'lost']);
      expect([await ask(delivery), await both()]).toEqual(['lost', [true, false]]);
    });

    it('is not given to a second message whose own answer was lost while the first one is being sent', async () => {
      const delivery = await accept();
      expect(await ask(delivery)).toBe(true);
      losses.push('answer', 'statement');
      expect([await ask(delivery), await ask(delivery), await ask(delivery)]).toEqual(['lost', 'lost', false]);
      // Nor after it has failed unsent: then it is handed out anew.
      await test.settlements.settle({ ...retried(delivery, 0), from: 'sending' as const });
      process.forget(delivery);
      losses.push('answer');
      expect([await ask(delivery), await ask(delivery)]).toEqual(['lost', false]);
      const { deliveries } = await handOutDue(test.postgres, 10, null);
      expect([await ask(delivery), await ask(deliveries[0]!), await ask(deliveries[0]!)]).toEqual([false, true, false]);
    });

    it('is not given for a delivery that was cancelled or given up meanwhile', async () => {
      const [cancelled, over] = [await accept(), await accept()];
      losses.push('answer');
      expect(await Promise.all([ask(cancelled), ask(over)])).toEqual(['lost', 'lost']);
      await cancel(test.postgres, cancelled);
      await test.age([over], 3_600_000);
      expect(await endSending(test.postgres, 0, 100, true)).toHaveLength(1);
      expect(await Promise.all([ask(cancelled), ask(over)])).toEqual([false, false]);
      expect([await test.state(cancelled), await test.state(over)]).toEqual(['cancelled', 'unknown']);
    });
  });

  it('goes to the generation that was handed out last, also when an older one asks together with it', async () => {
    const old = await accept();
    await putBack(test.postgres, [old], 0);
    await handOutDue(test.postgres, 10, null);
    const current = { ...old, generation: 2 };
    expect(await Promise.all([old, current, old].map((each) => claim(each)))).toEqual([false, true, false]);
  });

  it.each(['waiting', 'held', 'cancelled', 'failed', 'expired', 'unknown', 'delivered'])(
    'is not given for a delivery that is %s',
    async (state) => {
      const delivery = await accept();
      await test.sql('UPDATE delivery SET state = $1 WHERE notification_id = $2', [state, delivery.notificationId]);
      expect(await claim(delivery)).toBe(false);
      expect(await test.state(delivery)).toBe(state);
    },
  );

  it('is known to have been taken back by a cancellation, until its call begins', async () => {
    const [cancelled, kept, unclaimed] = [await accept(), await accept(), await accept()];
    for (const each of [cancelled, kept]) await claim(each);
    await cancel(test.postgres, cancelled);
    const asked = [cancelled, kept, unclaimed, { ...kept, generation: 2 }];
    const answers = await Promise.all(asked.map((each) => test.claims.isStillClaimed(each)));
    expect(answers).toEqual([false, true, false, false]);
  });

  it('is not touched by other messages that find the same delivery queued', async () => {
    const delivery = await accept();
    expect(await claim(delivery)).toBe(true);
    await test.holds.hold(delivery, 'endpoint-busy');
    await test.settlements.settle(retried(delivery, 0));
    for (const state of ['failed', 'expired', 'cancelled'] as const)
      await test.settlements.settle(ended(delivery, state));
    await putBack(test.postgres, [delivery], 0);
    await test.keepInHand([delivery], 'another process');
    await test.inHandOf('another process').leaveToHolder(delivery, 'the holder', 0);
    await freeOfDeadProcesses(test.postgres, 100);
    await freeAfterLease(test.postgres, 0, 100);
    await freeQueuedBefore(test.postgres, 0, Date.now() + 3_600_000, 100);
    expect(await test.row(delivery)).toMatchObject({
      state: 'sending',
      process: test.heartbeat.processId,
      attempts: 0,
    });
    expect((await handOutDue(test.postgres, 100, null)).deliveries).toEqual([]);
  });

  it.each(['waiting', 'failed', 'unknown'] as const)('ends with what its process says: %s', async (state) => {
    const delivery = await accept();
    await claim(delivery);
    const attempt = attemptNumber(1);
    if (state === 'waiting') await test.settlements.settle({ ...retried(delivery, 0), from: 'sending' });
    else await test.settlements.settle({ ...delivery, from: 'sending', state, attempt });
    expect(await test.row(delivery)).toMatchObject({
      state,
      process: null,
      has_ended: state === 'failed' || state === 'unknown',
    });
  });

  it('does not settle a delivery that was not claimed', async () => {
    const delivery = await accept();
    await test.settlements.settle({ ...retried(delivery, 0), from: 'sending' as const });
    expect(await test.state(delivery)).toBe('queued');
  });

  it('becomes unknown when its time is over, and delivered if a success is told all the same', async () => {
    const delivery = await accept();
    await claim(delivery);
    expect(await endSending(test.postgres, 0, 100, true)).toEqual([]);
    await test.age([delivery], 3_600_000);
    const { notificationId, subscriptionId } = delivery;
    expect(await endSending(test.postgres, 0, 100, true)).toEqual([{ notificationId, subscriptionId }]);
    expect(await test.row(delivery)).toMatchObject({
      state: 'unknown',
      process: null,
      has_ended: true,
      due_in_ms: null,
    });
    await test.settlements.settle({ ...retried(delivery, 0), from: 'sending' as const });
    expect(await test.state(delivery)).toBe('unknown');
    await test.settlements.settle({ ...delivered(delivery), from: 'sending' as const });
    expect(await test.state(delivery)).toBe('delivered');
  });

  it('ends with what its process says, not by its time, where that was over while nobody reached Postgres', async () => {
    const [reported, neverReported] = [await accept(), await accept()];
    await Promise.all([claim(reported), claim(neverReported)]);
    await test.age([reported, neverReported], 60_000);
    const steadyFor = (interval: string) =>
      test.sql('UPDATE process SET steady_since = now() - $1::interval', [interval]);
    const isUndecided = () => anyUndecided(test.postgres, 0, true);
    await steadyFor('0'); // it has just reached Postgres again
    expect([await endSending(test.postgres, 0, 100, true), await isUndecided()]).toEqual([[], true]);
    await steadyFor('10 s');
    expect([await endSending(test.postgres, 0, 100, true), await isUndecided()]).toEqual([[], true]);
    await test.settlements.settle({ ...retried(reported, 0), from: 'sending' as const });
    expect(await test.state(reported)).toBe('waiting');
    await steadyFor('1 minute');
    expect([await isUndecided(), await endSending(test.postgres, 0, 100, true)]).toMatchObject([
      false,
      [{ notificationId: neverReported.notificationId }],
    ]);
  });

  it('ends no sooner than a worker could report, where a statement may take minutes', async () => {
    const patient = Object.create(test.postgres, { longestAnswerMs: { value: 121_000 } }) as Postgres;
    const claimed = await accept();
    await claim(claimed);
    await test.age([claimed], 3_600_000);
    const steadyFor = (interval: string) =>
      test.sql('UPDATE process SET steady_since = now() - $1::interval', [interval]);
    await steadyFor('1 minute');
    expect([await endSending(patient, 0, 100, true), await anyUndecided(patient, 0, true)]).toEqual([[], true]);
    await steadyFor('1 hour');
    expect([await anyUndecided(patient, 0, true), await endSending(patient, 0, 100, true)]).toMatchObject([
      false,
      [{ notificationId: claimed.notificationId }],
    ]);
  });

  it('lasts as long as the call may take, which differs from subscription to subscription', async () => {
    const [hasty, patient] = [await accept(), await accept()];
    await Promise.all([test.claims.claim(hasty, 1000), test.claims.claim(patient, 300_000)]);
    await test.age([hasty, patient], 60_000);
    expect(await endSending(test.postgres, 0, 100, true)).toHaveLength(1);
    expect([await test.state(hasty), await test.state(patient)]).toEqual(['unknown', 'sending']);
    await test.age([patient], 300_000);
    expect(await endSending(test.postgres, 0, 100, true)).toHaveLength(1);
  });

  it('is counted as unknown once, by the dispatcher or by its process', async () => {
    const before = await unknown();
    const late = await accept();
    await claim(late);
    await test.age([late], 3_600_000);
    await endSending(test.postgres, 0, 100, true);
    await test.settlements.settle({ ...late, state: 'unknown', attempt: attemptNumber(1), from: 'sending' as const });
    expect(await unknown()).toBe(before + 1);
    const reported = await accept();
    await claim(reported);
    await test.settlements.settle({
      ...reported,
      state: 'unknown',
      attempt: attemptNumber(1),
      from: 'sending' as const,
    });
    expect(await unknown()).toBe(before + 2);
  });

  it('becomes unknown when its process is no more', async () => {
    const delivery = await accept();
    await claim(delivery);
    await live('-1 ms');
    // As after an outage of Postgres: nobody could show signs of life.
    expect(await endSending(test.postgres, 0, 100, true)).toEqual([]);
    await (await test.startProcess()).witness();
    expect(await endSending(test.postgres, 0, 100, true)).toHaveLength(1);
    expect(await test.state(delivery)).toBe('unknown');
  });

  it('is given once more when an operator has an unknown delivery sent again', async () => {
    const delivery = await accept();
    await claim(delivery);
    await test.age([delivery], 3_600_000);
    await endSending(test.postgres, 0, 100, true);
    expect(await retryNow(test.postgres, delivery)).toBe('retried');
    const { deliveries } = await handOutDue(test.postgres, 10, null);
    expect(deliveries).toMatchObject([{ replays: 1, failures: 0 }]);
    expect(await claim(delivery)).toBe(false);
    expect(await claim(deliveries[0]!)).toBe(true);
  });
});

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { Dispatcher } from '../../src/dispatching/dispatcher.service.js';
import type { SendingEnded } from '../../src/dispatching/sending-ended.js';
import type { Delivery } from '../../src/ledger/delivery.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import type { Enqueuer } from '../../src/queue/enqueuer.service.js';
import type { QueuePosition } from '../../src/queue/queue-position.service.js';
import { eventually } from '../support/eventually.js';
import { attemptNumber, TestLedger } from '../support/ledger.js';
import { LookClock, lookForLong } from '../support/look-for-long.js';
import { real, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

const running = new AbortController().signal;
/** The time of a claim is over then, by five seconds. */
const overMs = 30_000;

describe('the time of a claim at most once', () => {
  let prepared: PreparedStack;
  let test: TestLedger;
  let clock: LookClock;
  let dispatcher: Dispatcher;
  let rule: SendingEnded;

  beforeAll(async () => {
    prepared = await real.prepare();
    test = await TestLedger.open(prepared.settings);
    await (await test.startProcess()).witness();
  });
  beforeEach(async () => {
    await test.clear();
    clock = new LookClock();
    const ledgerClock = { now: Date.now } as LedgerClock;
    const [enqueuer, position] = [{} as Enqueuer, {} as QueuePosition];
    dispatcher = new Dispatcher(test.postgres, enqueuer, position, test.events, ledgerClock, clock);
    rule = dispatcher.sendingEnded;
  });
  afterAll(async () => {
    await test.close();
    await prepared.release();
  });

  async function claimed(count: number): Promise<Delivery[]> {
    const deliveries = await test.accept(count);
    await Promise.all(deliveries.map((each) => test.claims.claim(each, 10_000)));
    return deliveries;
  }
  const statesOf = (deliveries: Delivery[]) => Promise.all(deliveries.map((each) => test.state(each)));

  it.each(['ACCESS EXCLUSIVE', 'SHARE'])(
    'does not count while its table is locked (%s), although processes show signs of life, nor just after',
    async (mode) => {
      await lookForLong(rule, clock);
      const [reported, neverReported] = await claimed(2);
      let look: Promise<unknown> | undefined;
      await test.postgres.dataSource.transaction(async (manager) => {
        await manager.query(`LOCK TABLE delivery IN ${mode} MODE`);
        look = rule.run(running).catch(() => {}); // by then it may have waited for as long as it may
        const waits = `SELECT FROM pg_locks JOIN pg_database d ON d.oid = database
                       WHERE datname = current_database() AND relation = 'delivery'::regclass AND NOT granted`;
        await eventually(async () => (await manager.query<unknown[]>(waits)).length > 0, 'the look to wait');
        await manager.query('UPDATE delivery SET next_at = clock_timestamp()');
        clock.ms += 30_000;
      });
      await look;
      expect([await rule.run(running), await rule.anyUndecided()]).toEqual([0, true]);
      await test.settlements.settle({ ...reported!, from: 'sending', state: 'failed', attempt: attemptNumber(1) });
      expect(await statesOf([reported!, neverReported!])).toEqual(['failed', 'sending']);
      await lookForLong(rule, clock);
      expect([await rule.anyUndecided(), await rule.run(running)]).toEqual([false, 0]);
      expect(await statesOf([reported!, neverReported!])).toEqual(['failed', 'unknown']);
    },
  );

  it('does not count for a dispatcher that has just started, or stood still: it does not know what was locked', async () => {
    const first = await claimed(1);
    await test.age(first, overMs);
    expect([await rule.run(running), await rule.anyUndecided()]).toEqual([0, true]);
    await lookForLong(rule, clock);
    expect(await statesOf(first)).toEqual(['unknown']);
    const second = await claimed(1);
    await test.age(second, overMs);
    clock.ms += 60_000;
    expect([await rule.run(running), await rule.anyUndecided()]).toEqual([0, true]);
    await lookForLong(rule, clock);
    expect(await statesOf(second)).toEqual(['unknown']);
  });

  it('is waited for by a run that ends then, also where one look is late', async () => {
    const deliveries = await claimed(1);
    await test.age(deliveries, overMs);
    const pause = clock.pause.bind(clock);
    let pauses = 0;
    // Shortly before its looks have come through for long enough.
    clock.pause = (ms) => pause(++pauses === 30 ? 6000 : ms);
    expect(await dispatcher.endSending(running)).toEqual({ deliveries: 1, failedRules: [] });
    expect(await statesOf(deliveries)).toEqual(['unknown']);
    expect(clock.ms).toBeGreaterThanOrEqual(30 * 500 + 20_000);
  });

  describe('where statements that end claims fail', () => {
    let dead: Delivery;
    let alive: Delivery;

    beforeEach(async () => {
      const deliveries = await claimed(2);
      [dead, alive] = deliveries as [Delivery, Delivery];
      await test.age(deliveries, overMs);
      const process = await test.startProcess();
      await process.die();
      const its = `(notification_id, subscription_id) = ('${dead.notificationId}', '${dead.subscriptionId}')`;
      await test.sql(`UPDATE delivery SET process = $1 WHERE ${its}`, [process.id]);
      await test.sql(`ALTER TABLE delivery ADD CONSTRAINT fails CHECK (state <> 'unknown' OR ${its}) NOT VALID`);
    });
    const works = () => test.sql('ALTER TABLE delivery DROP CONSTRAINT IF EXISTS fails');
    afterEach(works);

    it('is still waited for by such a run, which goes on', async () => {
      const run = rule.run.bind(rule);
      let failures = 0;
      rule.run = (stopping) =>
        run(stopping).catch(async (error: unknown) => {
          failures++;
          await works();
          throw error;
        });
      expect(await dispatcher.endSending(running)).toEqual({ deliveries: 2, failedRules: [] });
      expect([failures, ...(await statesOf([dead, alive]))]).toEqual([1, 'unknown', 'unknown']);
    });

    it('is waited for no more where they go on to, and what has ended counts', async () => {
      expect(await dispatcher.endSending(running)).toEqual({ deliveries: 1, failedRules: ['sending-ended'] });
      expect(await statesOf([dead, alive])).toEqual(['unknown', 'sending']);
    });
  });

  it('is not waited for where the process that claimed it is dead', async () => {
    const deliveries = await claimed(1);
    const dead = await test.startProcess();
    await dead.die();
    await test.sql('UPDATE delivery SET process = $1', [dead.id]);
    expect(await rule.anyUndecided()).toBe(false);
    expect(await rule.run(running)).toBe(1);
    expect(await statesOf(deliveries)).toEqual(['unknown']);
  });
});

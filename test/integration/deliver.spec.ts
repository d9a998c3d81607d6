import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { verbatim } from '../../src/credentials/credentials.js';
import { Admission } from '../../src/endpoints/admission.service.js';
import { HoldRule } from '../../src/endpoints/hold-rule.service.js';
import type { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import { DeliveryRecords } from '../../src/delivery/delivery-records.service.js';
import type { OpenEndpoint } from '../../src/ledger/open-endpoints.js';
import type { OperationalEvent } from '../../src/operational-events/operational-events.service.js';
import { Decider } from '../../src/delivery/decider.service.js';
import { InProcessAttemptStates } from '../../src/delivery/attempt-states.in-process.js';
import { LateLocks } from '../../src/delivery/late-locks.service.js';
import { handOverLeaseMs } from '../../src/queue/hand-over.service.js';
import type { WebhookResponse } from '../../src/delivery/webhook-client.js';
import { DeliverService, type Surroundings } from '../../src/delivery/deliver.service.js';
import { filteredCounted } from '../../src/delivery/delivery.counters.js';
import type { Sender } from '../../src/delivery/sender.service.js';
import type { Turns } from '../../src/delivery/turns.service.js';
import { Idempotency } from '../../src/idempotency/idempotency.service.js';
import { handOutDue } from '../../src/ledger/hand-out-due.js';
import { putBack } from '../../src/ledger/put-back.js';
import { retryNow } from '../../src/ledger/retry-now.js';
import type { Delivery } from '../../src/ledger/delivery.js';
import { ErasureWork } from '../../src/retention/erasure-work.service.js';
import { Erasures } from '../../src/retention/erasures.service.js';
import { defaultRetryPolicy } from '../../src/retry-policy/retry-schedule.js';
import type { RetryPolicies } from '../../src/retry-policy/retry-policies.service.js';
import { systemClock } from '../../src/infra/clock.js';
import type { Attempt, Outcome } from '../../src/ledger/settle.service.js';
import type { Subscription } from '../../src/subscriptions/subscription.js';
import type { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { storeAdapters, type OpenStore } from '../support/idempotency-stores.js';
import { attemptNumber, retried, TestLedger } from '../support/ledger.js';
import { eventually } from '../support/eventually.js';
import { answered } from '../support/responses.js';
import { real } from '../support/stacks.js';

const minuteMs = 60_000;
const delivered: Outcome = { state: 'delivered', attempt: attemptNumber(1, { status: 204, error: null }) };
const retry: Outcome = { state: 'waiting', attempt: attemptNumber(1), delayMs: minuteMs };
const failed: Outcome = { state: 'failed', attempt: attemptNumber(1) };

describe.each(storeAdapters)('delivering at least once, with locks and seals in $name', (adapter) => {
  let test: TestLedger;
  let opened: OpenStore;
  let subscription: Subscription | undefined;
  let outcome: Outcome;
  let calls: number;
  /** The open endpoint that the callback URL leads to. */
  let open: OpenEndpoint | undefined;
  let mayProbe: boolean;
  /** With the pause before the next, and whether it found nothing. */
  let endedProbes: unknown[];
  let closed: string[];
  let reported: OperationalEvent[];
  let deliver: DeliverService;
  let lateLocks: LateLocks;
  /** The heartbeat of this process is recent. */
  let isSteady: boolean;
  /** Milliseconds that have passed for what is sent without a lock. */
  let passedMs: number;
  let answer: () => Promise<WebhookResponse>;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    test = await TestLedger.on(real);
    opened = await adapter.open();
  });
  afterAll(async () => {
    await opened.release();
    await test.close();
  });

  beforeEach(() => {
    subscription = {
      id: '',
      ownerClientId: 'owner',
      callbackUrl: 'http://receiver/',
      auth: '',
      channels: [],
      deliveryGuarantee: 'at-least-once',
      disabledAt: null,
      pausedAt: null,
      timeoutSeconds: null,
      maxConcurrency: null,
      ratePerSecond: null,
      ordering: 'none',
      alertEmail: null,
      credentials: verbatim,
      signingKeys: [],
      unreadable: null,
    };
    calls = 0;
    reported = [];
    [isSteady, passedMs] = [true, 0];
    answer = () => Promise.resolve(answered(200));
    vi.spyOn(test.events, 'report').mockImplementation((event) => void reported.push(event));
    // One call a delivery; the test decides its outcome.
    const send = async () => {
      calls += 1;
      return answer();
    };
    const nothing = {} as never;
    const turns = { passOn: () => {} } as unknown as Turns;
    const policies = { for: () => defaultRetryPolicy } as unknown as RetryPolicies;
    open = undefined;
    mayProbe = false;
    endedProbes = [];
    closed = [];
    const openEndpoints = {
      of: () => open,
      get all() {
        return new Map(open && [[open.address, open]]);
      },
      claimProbe: () => Promise.resolve(mayProbe),
      endProbe: async (...probe: unknown[]) => void endedProbes.push(probe),
      close: (address: string) => Promise.resolve(closed.push(address) > 0),
    } as unknown as OpenEndpoints;
    const decider = new Decider(nothing, policies, test.ledgerClock, nothing, test.config);
    vi.spyOn(decider, 'decide').mockImplementation(() => Promise.resolve(outcome));
    const idempotency = new Idempotency(
      opened.stores[0],
      { processId: opened.living } as typeof test.heartbeat,
      systemClock,
    );
    const heartbeat = {
      get isSteady() {
        return isSteady;
      },
    } as typeof test.heartbeat;
    const clock = { now: () => passedMs, pause: systemClock.pause };
    lateLocks = new LateLocks(idempotency, heartbeat, clock, test.ledgerClock, test.config);
    deliver = new DeliverService(
      test.config,
      systemClock,
      { find: () => subscription } as unknown as SubscriptionDirectory,
      idempotency,
      new Admission(test.config, new HoldRule(openEndpoints), openEndpoints, test.ledgerClock, systemClock),
      { send } as unknown as Sender,
      decider,
      new DeliveryRecords(
        systemClock,
        test.settlements,
        test.holds,
        test.claims,
        test.inHand,
        nothing,
        turns,
        test.config,
      ),
      lateLocks,
    );
  });
  afterEach(async () => {
    lateLocks.beforeApplicationShutdown();
    vi.restoreAllMocks();
    await test.clear();
  });

  const usual = (): Surroundings => ({
    bodies: {} as never,
    onBegun: () => {},
    stopping: new AbortController().signal,
    isHandedOver: false,
    queuedAt: test.ledgerClock.now(),
    isRedelivered: false,
    since: systemClock.now(),
  });
  const run = (delivery: Delivery, came: Partial<Surroundings> = {}) =>
    deliver.deliver({ ...delivery, body: Buffer.from('{}') }, { ...usual(), ...came });
  /** It is handed over to the worker of the process that accepted it, and its call is open. */
  async function begin(delivery: Delivery, came: Partial<Surroundings> = {}): Promise<{ end: () => Promise<void> }> {
    await test.keepInHand([delivery], test.heartbeat.processId);
    let respond = () => {};
    answer = () => new Promise((resolve) => (respond = () => resolve(answered(200))));
    const running = run(delivery, { isHandedOver: true, ...came });
    await eventually(() => calls > 0);
    return {
      end: () => {
        respond();
        return running;
      },
    };
  }
  const keyOf = async (delivery: Delivery) => (await opened.stores[1].acquire(lockOf(delivery))).kind;

  /** It is sent, with that outcome, which never reaches the ledger; then it is handed out again. */
  async function runUnheard(sent: Outcome): Promise<Delivery> {
    const [delivery] = await test.accept();
    outcome = sent;
    vi.spyOn(test.settlements, 'settle').mockResolvedValueOnce();
    await run(delivery!);
    expect(await test.state(delivery!)).toBe('queued');
    await putBack(test.postgres, [delivery!], -1);
    const { deliveries } = await handOutDue(test.postgres, 1, null);
    return deliveries[0]!;
  }

  const filtered = async () => (await filteredCounted.get()).values[0]!.value;

  it('ends one whose body was erased, without a call', async () => {
    const [delivery] = await test.accept();
    const bodies = { borrow: () => Promise.resolve() } as never;
    const stopping = new AbortController().signal;
    const surroundings = { ...usual(), bodies, stopping };
    await deliver.deliver({ ...delivery!, body: null }, surroundings);
    const last_error = 'the body of its notification was erased';
    expect([calls, await test.row(delivery!)]).toMatchObject([0, { state: 'cancelled', last_error }]);
  });

  it('does not send what was erased while its message was on its way', async () => {
    await makeMonthsAhead(test.postgres);
    const [delivery] = await test.accept();
    const idempotency = new Idempotency(
      opened.stores[1],
      { processId: opened.living } as typeof test.heartbeat,
      systemClock,
    );
    const erasures = new ErasureWork(test.postgres, idempotency, new InProcessAttemptStates(), test.config);
    await new Erasures(test.postgres).ofNotification(delivery!.notificationId);
    await erasures.workOff(new AbortController().signal);
    const before = await test.row(delivery!);
    await run(delivery!);
    expect([calls, before?.state, await test.row(delivery!)]).toEqual([0, 'cancelled', before]);
    await test.sql('DELETE FROM erasure; DELETE FROM erased_delivery');
  });

  it('sends it again after a failure that is retried', async () => {
    const again = await runUnheard(retry);
    outcome = delivered;
    await run(again);
    expect(calls).toBe(2);
    expect(await test.state(again)).toBe('delivered');
  });

  it.each<[string, Outcome]>([
    ['a success', delivered],
    ['a final failure', failed],
  ])('does not send it again after %s, counts that, and tells the ledger what it missed', async (_what, sent) => {
    const again = await runUnheard(sent);
    const before = await filtered();
    await run(again);
    expect(calls).toBe(1);
    expect(await filtered()).toBe(before + 1);
    expect(await test.row(again)).toMatchObject({ state: sent.state, attempts: 1 });
    expect(await test.attempts(again)).toHaveLength(1);
  });

  it.each<[string, (delivery: Delivery) => Delivery]>([
    ['is too old to be sent', (delivery) => ({ ...delivery, expiresAt: Date.now() - minuteMs })],
    ['has lost its subscription', (delivery) => ((subscription = undefined), delivery)],
    [
      'goes to a receiver that is gone for good',
      (delivery) => ((subscription = { ...subscription!, disabledAt: new Date() }), delivery),
    ],
  ])('knows of a delivery that it was sent, although meanwhile it %s', async (_what, change) => {
    const again = change(await runUnheard(delivered));
    await run(again);
    expect(calls).toBe(1);
    expect(await test.row(again)).toMatchObject({ state: 'delivered', attempts: 1 });
  });

  it.each<[string, string, (delivery: Delivery) => Delivery]>([
    ['expired', 'too old', (delivery) => ({ ...delivery, expiresAt: Date.now() - minuteMs })],
    ['cancelled', 'without a subscription', (delivery) => ((subscription = undefined), delivery)],
    [
      'failed',
      'for a receiver that is gone for good',
      (delivery) => ((subscription = { ...subscription!, disabledAt: new Date() }), delivery),
    ],
  ])('ends as %s, without a call, what is %s', async (state, _what, change) => {
    const [delivery] = await test.accept();
    await run(change(delivery!));
    expect(calls).toBe(0);
    expect(await test.row(delivery!)).toMatchObject({ state, attempts: 0 });
    // Nothing is sealed by it: an operator may have it sent after all.
    expect((await opened.stores[1].acquire(lockOf(delivery!))).kind).toBe('acquired');
  });

  it('does not send a delivery that another worker is sending, leaves it in the hand of that one, and checks it again soon', async () => {
    const [delivery] = await test.accept();
    await opened.stores[1].acquire(lockOf(delivery!));
    await run(delivery!);
    expect(calls).toBe(0);
    const row = (await test.row(delivery!))!;
    expect(row).toMatchObject({ state: 'queued', process: opened.living });
    expect(row.due_in_ms).toBeLessThan(test.config.settings.NOTIFICATION_REQUESTS_TIMEOUT * 1000 + 10_000);
  });

  it('leaves a delivery to the worker that is sending it for as long as the call may take', async () => {
    subscription = { ...subscription!, timeoutSeconds: 45 };
    const [delivery] = await test.accept();
    await test.keepInHand([delivery!], test.heartbeat.processId);
    await opened.stores[1].acquire(lockOf(delivery!));
    await run(delivery!);
    const { due_in_ms: dueInMs } = (await test.row(delivery!))!;
    expect(dueInMs).toBeGreaterThan(test.config.settings.NOTIFICATION_REQUESTS_TIMEOUT * 1000 + 10_000);
    expect(dueInMs).toBeLessThanOrEqual(51_000);
  });

  describe('whose subscription is at most once by now', () => {
    const switchOver = () => (subscription = { ...subscription!, deliveryGuarantee: 'at-most-once' });
    /** Its first call comes to this, at least once; then it is handed out again. */
    async function runBefore(parts: Partial<Attempt>): Promise<Delivery> {
      const [delivery] = await test.accept();
      outcome = { state: 'waiting', attempt: attemptNumber(1, parts), delayMs: 0 };
      await run(delivery!);
      switchOver();
      outcome = { state: 'delivered', attempt: attemptNumber(2, { status: 204, error: null }) };
      return handOut();
    }
    async function handOut(): Promise<Delivery> {
      const { deliveries } = await handOutDue(test.postgres, 1, null);
      return deliveries[0]!;
    }
    const sent = { status: null, details: { address: null, headers: null, body: null, wasSent: true as const } };

    it.each<[string, Outcome]>([
      ['a success', delivered],
      ['a final failure', failed],
    ])('is not sent again after %s that the ledger has missed, by a later message', async (_what, missed) => {
      const again = await runUnheard(missed);
      switchOver();
      await run(again);
      expect([calls, await test.row(again)]).toMatchObject([1, { state: missed.state, attempts: 1 }]);
    });

    it('is not sent again after a success that the ledger has missed, by the same message', async () => {
      const [delivery] = await test.accept();
      outcome = delivered;
      vi.spyOn(test.settlements, 'settle').mockResolvedValueOnce();
      await run(delivery!);
      switchOver();
      await run(delivery!, { isRedelivered: true });
      expect([calls, await test.row(delivery!)]).toMatchObject([1, { state: 'delivered', attempts: 1 }]);
    });

    it('is left to a worker that has not heard of that and is sending it', async () => {
      const [delivery] = await test.accept();
      await opened.stores[1].acquire(lockOf(delivery!));
      switchOver();
      await run(delivery!, { isRedelivered: true });
      expect([calls, await test.row(delivery!)]).toMatchObject([0, { state: 'queued', process: opened.living }]);
    });

    it.each<[string, Outcome['state'], Partial<Attempt>]>([
      ['was sent and not answered', 'unknown', sent],
      ['was answered with an error', 'failed', { status: 503 }],
    ])('is not sent again where an earlier call %s, and ends as %s', async (_how, state, parts) => {
      const again = await runBefore(parts);
      await run(again);
      expect([calls, await test.row(again)]).toMatchObject([1, { state, attempts: 1 }]);
      expect(await keyOf(again)).toBe('acquired');
    });

    it('is not sent again where the result of an earlier call came after it was handed out anew', async () => {
      const [delivery] = await test.accept();
      await putBack(test.postgres, [delivery!], 0);
      const again = await handOut();
      await test.settlements.settle(retried(delivery!, 0));
      expect(await test.row(again)).toMatchObject({ state: 'queued', failures: 0 });
      switchOver();
      outcome = delivered;
      await run(again);
      expect([calls, await test.state(again)]).toEqual([0, 'failed']);
      await retryNow(test.postgres, again);
      await run(await handOut());
      expect([calls, await test.state(again)]).toEqual([1, 'delivered']);
    });

    it('is sent where no earlier call had left, and its key is free after that', async () => {
      const again = await runBefore({ status: null, error: 'ECONNREFUSED' });
      await run(again);
      expect([calls, await test.row(again)]).toMatchObject([2, { state: 'delivered', attempts: 2 }]);
      expect(await keyOf(again)).toBe('acquired');
    });

    it('is sent once more where an operator wants that', async () => {
      const again = await runBefore(sent);
      await run(again);
      await retryNow(test.postgres, again);
      await run(await handOut());
      expect([calls, await test.row(again)]).toMatchObject([2, { state: 'delivered', attempts: 2 }]);
    });
  });

  describe('handed over', () => {
    it('needs no lock and leaves no seal, where it is over at once', async () => {
      const [delivery] = await test.accept();
      outcome = delivered;
      const { end } = await begin(delivery!);
      await lateLocks.sweep();
      await end();
      expect([calls, await test.row(delivery!)]).toMatchObject([1, { state: 'delivered', attempts: 1 }]);
      expect(await keyOf(delivery!)).toBe('acquired');
    });

    it('is locked where its call takes long, and then sealed', async () => {
      const [delivery] = await test.accept();
      outcome = delivered;
      const { end } = await begin(delivery!);
      passedMs = 400;
      await lateLocks.sweep();
      expect(await keyOf(delivery!)).toBe('locked');
      await end();
      expect([await test.state(delivery!), await keyOf(delivery!)]).toEqual(['delivered', 'sealed']);
    });

    it('is locked where its call takes long, and released for its next attempt', async () => {
      const [delivery] = await test.accept();
      outcome = retry;
      const { end } = await begin(delivery!);
      passedMs = 400;
      await lateLocks.sweep();
      expect(await keyOf(delivery!)).toBe('locked');
      await end();
      expect([await test.state(delivery!), await keyOf(delivery!)]).toEqual(['waiting', 'acquired']);
    });

    it('is sealed where the ledger does not take its outcome soon: no other process sends it again', async () => {
      const [delivery] = await test.accept();
      outcome = delivered;
      let settle = () => {};
      vi.spyOn(test.settlements, 'settle').mockImplementation(() => new Promise((resolve) => (settle = resolve)));
      const { end } = await begin(delivery!);
      const ending = end();
      passedMs = 400;
      await lateLocks.sweep();
      expect(await keyOf(delivery!)).toBe('sealed');
      settle();
      await ending;
      expect([await test.state(delivery!), await keyOf(delivery!)]).toEqual(['queued', 'sealed']);
    });

    it('is locked like any other one where its process stood still for as long as the lease that it was accepted with', async () => {
      const [delivery] = await test.accept();
      outcome = delivered;
      const { end } = await begin(delivery!, { queuedAt: test.ledgerClock.now() - handOverLeaseMs });
      expect(await keyOf(delivery!)).toBe('locked');
      await end();
      expect(await keyOf(delivery!)).toBe('sealed');
    });

    it('is locked like any other one while the heartbeat of its process does not reach the ledger', async () => {
      const [delivery] = await test.accept();
      outcome = delivered;
      isSteady = false;
      const { end } = await begin(delivery!);
      expect(await keyOf(delivery!)).toBe('locked');
      await end();
      expect(await keyOf(delivery!)).toBe('sealed');
    });
  });

  describe('to a parked endpoint', () => {
    const parked = (nextProbeInMs: number): OpenEndpoint => ({
      address: 'http://receiver',
      openedAt: new Date('2026-11-22T12:00:00Z'),
      reason: 'ECONNREFUSED',
      failures: 5,
      probes: 0,
      nextProbeAt: new Date(Date.now() + nextProbeInMs),
      leftAloneUntil: new Date(Date.now() + nextProbeInMs),
      askedUntil: null,
    });
    beforeEach(() => {
      open = parked(minuteMs);
      outcome = delivered;
    });

    it('is held, at no cost of an attempt', async () => {
      const [delivery] = await test.accept();
      await run(delivery!);
      expect(calls).toBe(0);
      expect(await test.row(delivery!)).toMatchObject({ state: 'held', attempts: 0, due_in_ms: null });
    });

    it('is sent when it was released as a probe', async () => {
      const [delivery] = await test.accept();
      await run({ ...delivery!, isReleased: true, isProbe: true });
      expect([calls, await test.state(delivery!)]).toEqual([1, 'delivered']);
    });

    it.each<[string, boolean, unknown[]]>([
      ['gives way to another probe soon', true, [['http://receiver', 500, true]]],
      ['leaves its probe alone where it is none', false, []],
    ])('%s when it has expired on the way', async (_what, isProbe, expected) => {
      const [delivery] = await test.accept();
      await run({ ...delivery!, isReleased: true, isProbe, expiresAt: Date.now() - minuteMs });
      expect([calls, await test.state(delivery!), endedProbes]).toEqual([0, 'expired', expected]);
    });

    it('is held again when it was released before the endpoint was parked', async () => {
      const [delivery] = await test.accept();
      await run({ ...delivery!, isReleased: true });
      expect([calls, await test.state(delivery!)]).toEqual([0, 'held']);
    });

    it('is sent when a probe is due, so that a delivery that is alone keeps its schedule; once', async () => {
      const [first, second] = await test.accept(2);
      open = parked(-1);
      mayProbe = true;
      await run(first!);
      await run(second!);
      expect(calls).toBe(1);
      expect([await test.state(first!), await test.state(second!)]).toEqual(['delivered', 'held']);
    });

    it.each<[string, Outcome, string[]]>([
      ['closes it where it turns out to have arrived', delivered, ['http://receiver']],
      ['leaves it parked where it turns out to have failed', failed, []],
    ])('is not sent again as a probe, and %s', async (_what, sent, expected) => {
      open = undefined;
      const again = await runUnheard(sent);
      open = { ...parked(-1), openedAt: new Date(sent.attempt!.startedAt - 1000) };
      mayProbe = true;
      await run(again);
      expect([calls, await test.state(again), closed]).toEqual([1, sent.state, expected]);
    });
  });

  it('holds the delivery of a subscription that is paused', async () => {
    const [delivery] = await test.accept();
    subscription = { ...subscription!, pausedAt: new Date() };
    await run(delivery!);
    expect(calls).toBe(0);
    expect(await test.state(delivery!)).toBe('held');
  });

  it('reports a delivery that died, and none that is tried again', async () => {
    const [first, second] = await test.accept(2);
    outcome = retry;
    await run(first!);
    expect(reported).toEqual([]);
    outcome = failed;
    await run(second!);
    expect(reported).toMatchObject([{ event: 'delivery.dead', state: 'failed', reason: 'HTTP 503' }]);
  });

  const lockOf = ({ notificationId, subscriptionId }: Delivery) => ({
    key: `i9y:delivery:${notificationId}:${subscriptionId}`,
    token: `${opened.living}/another call`,
    ttlMs: minuteMs,
    requestHash: null,
    mayTakeOver: true,
  });
});

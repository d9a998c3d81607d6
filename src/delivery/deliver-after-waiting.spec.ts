import { beforeEach, describe, expect, it } from 'vitest';
import type { Catalogue } from '../catalogue/catalogue.service.js';
import { readSettings } from '../config/settings.js';
import { verbatim } from '../credentials/credentials.js';
import { Admission } from '../endpoints/admission.service.js';
import { HoldRule } from '../endpoints/hold-rule.service.js';
import type { OpenEndpoints } from '../endpoints/open-endpoints.service.js';
import type { Idempotency } from '../idempotency/idempotency.service.js';
import { systemClock, type Clock } from '../infra/clock.js';
import type { HandedOut, HeldReason } from '../ledger/delivery.js';
import { subscriptionDisabled } from '../ledger/end-of-subscription.js';
import type { Outcome } from '../ledger/settle.service.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { RetryPolicies } from '../retry-policy/retry-policies.service.js';
import type { Subscription } from '../subscriptions/subscription.js';
import type { ListedSubscription, SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { AttemptReporter } from './attempt-reporter.service.js';
import { keyIdOf } from './delivery-keys.js';
import { Decider } from './decider.service.js';
import { DeliverService } from './deliver.service.js';
import type { DeliveryRecords } from './delivery-records.service.js';
import type { LateLocks } from './late-locks.service.js';
import type { Caller } from './authorized-call.js';
import type { Sender } from './sender.service.js';
import { answered } from '../../test/support/responses.js';
import { settled } from '../../test/support/settled.js';

/** Calls to an endpoint of which nothing is known. */
const window = 8;
/** Of what was handed over. */
const leaseMs = 15_000;

describe('a delivery that waited in line', () => {
  let subscription: ListedSubscription | undefined;
  let calls: { callbackUrl: string; auth: string; caller: Caller; answer: () => void }[];
  let held: HeldReason[];
  let ended: string[];
  /** The states that they had before, as far as the worker knows. */
  let from: string[];
  /** Of those that ended without a call, in the words of the ledger. */
  let reasons: string[];
  let open: number;
  let clock: Clock;
  let waitedMs: number;
  let asked: string[];
  let isStillQueued: boolean;
  /** Called while it waits for the ledger's answer whether it is still queued. */
  let onAsk: () => void;
  let isStillClaimed: boolean;
  /** Of each delivery. */
  let released: Pick<HandedOut, 'isReleased' | 'releasedWith'>;
  /** Called while it waits for its lock. */
  let onLock: () => void;
  /** Called while it waits for its claim. */
  let onClaim: () => void;
  /** Called while the ledger looks for its earlier calls. */
  let onLook: () => void;
  /** The outcome of each call. */
  let state: Outcome['state'];
  let steps: string[];
  /** From when it is had; nothing extends it. */
  let lockMs: number;
  /** The keys that this process has locked. */
  let locked: Set<string>;
  /** Deliveries that were left to the holder of their lock. */
  let left: number[];
  /** The ledger has the outcome of a delivery. */
  let onOutcome: () => void;
  let mayLockLate: boolean;
  let admission: Admission;
  let deliver: DeliverService;

  beforeEach(() => {
    subscription = {
      callbackUrl: 'http://old/',
      auth: 'old',
      credentials: verbatim,
      maxConcurrency: null,
      ratePerSecond: null,
      pausedAt: null,
      disabledAt: null,
      version: 1,
    } as ListedSubscription;
    calls = [];
    held = [];
    [ended, from] = [[], []];
    reasons = [];
    open = 0;
    [waitedMs, asked, isStillQueued, isStillClaimed] = [0, [], true, true];
    [state, steps] = ['delivered', []];
    [onLock, onClaim, onLook, onOutcome, onAsk] = [() => {}, () => {}, () => {}, () => {}, () => {}];
    released = { isReleased: false };
    [locked, left, mayLockLate, lockMs] = [new Set(), [], false, Infinity];
    clock = {
      now: () => systemClock.now() + waitedMs,
      pause: (ms, signal) => systemClock.pause(ms, signal),
    };
    const config = { settings: readSettings({}) };
    const noneOpen = { of: () => undefined, all: new Map() } as unknown as OpenEndpoints;
    const done = () => Promise.resolve();
    const lock = (key: string) => {
      locked.add(key);
      const heldUntil = clock.now() + lockMs;
      const release = async () => {
        await settled();
        locked.delete(key);
        steps.push('released');
      };
      return {
        seal: done,
        release,
        get isHeld() {
          return clock.now() < heldUntil;
        },
      };
    };
    const ledgerClock = { now: () => clock.now() } as LedgerClock;
    const decider = new Decider({} as Catalogue, {} as RetryPolicies, ledgerClock, {} as AttemptReporter, config);
    decider.decide = () => Promise.resolve({ state, attempt: null } as Outcome);
    admission = new Admission(config, new HoldRule(noneOpen), noneOpen, {} as LedgerClock, systemClock);
    deliver = new DeliverService(
      config,
      clock,
      { find: () => subscription } as unknown as SubscriptionDirectory,
      {
        operation: () => ({
          acquire: async (key: string) => {
            onLock();
            if (locked.has(key)) return { kind: 'locked', holder: 'this process' };
            return { kind: 'acquired', lock: lock(key) };
          },
        }),
      } as unknown as Idempotency,
      admission,
      {
        send: (_delivery: unknown, { callbackUrl, auth }: Subscription, _guarantee: unknown, caller: Caller) =>
          new Promise((resolve) => calls.push({ callbackUrl, auth, caller, answer: () => resolve(answered(204)) })),
      } as unknown as Sender,
      decider,
      {
        hold: async (_: unknown, reason: HeldReason) => void held.push(reason),
        settle: async (_: unknown, { state, reason }: Outcome, before: string) => {
          ended.push(state);
          from.push(before);
          if (reason !== undefined) reasons.push(reason);
          await settled();
          steps.push('settled');
          onOutcome();
        },
        leaveToHolder: async ({ generation }: HandedOut) => void left.push(generation),
        claim: async () => (onClaim(), true),
        endOfEarlier: async () => onLook(),
        isStillClaimed: async () => isStillClaimed,
        isStillQueued: async ({ notificationId }: HandedOut) => (asked.push(notificationId), onAsk(), isStillQueued),
      } as unknown as DeliveryRecords,
      {
        mayWait: (queuedAt: number) => mayLockLate && clock.now() - queuedAt < leaseMs,
        begin: (delivery: HandedOut, queuedAt: number) => {
          const { seal, release } = lock(keyIdOf(delivery));
          return {
            seal,
            end: release,
            get isHeld() {
              return clock.now() - queuedAt < leaseMs;
            },
          };
        },
      } as unknown as LateLocks,
    );
  });

  const begin = (
    nr: number,
    waitedBeforeMs = 0,
    generation = 1,
    expiresAt: number | null = null,
    borrow?: () => void,
  ) => {
    const text = Buffer.from('{}');
    const body = borrow ? null : text;
    const key = { notificationId: String(nr), subscriptionId: 's' };
    const delivery = { ...key, replays: 0, generation, expiresAt, body, ...released };
    const stopping = new AbortController().signal;
    const surroundings = {
      bodies: { borrow: async () => (borrow?.(), { text, giveBack: () => steps.push('given back') }) } as never,
      onBegun: () => {},
      stopping,
      isHandedOver: mayLockLate && generation === 1,
      queuedAt: clock.now() - waitedBeforeMs,
      isRedelivered: false,
      since: clock.now() - waitedBeforeMs,
    };
    open++;
    return deliver.deliver(delivery as HandedOut, surroundings).finally(() => open--);
  };
  /** Answers its calls until it is over. */
  async function run(begun: Promise<void>): Promise<void> {
    for (let rounds = 0; rounds < 10 && open > 0; rounds++) {
      for (const { answer } of calls) answer();
      await settled();
    }
    expect(open).toBe(0);
    await begun;
  }
  /** More than the endpoint has room for; then that changes, and the calls are answered. */
  async function changeMeanwhile(changed: Partial<ListedSubscription> | undefined, passedMs = 0): Promise<void> {
    for (let nr = 0; nr < window + 3; nr++) void begin(nr);
    await settled();
    expect(calls).toHaveLength(window);
    subscription = changed && { ...subscription!, ...changed };
    waitedMs += passedMs;
    for (let rounds = 0; rounds < 10 && open > 0; rounds++) {
      for (const { answer } of calls) answer();
      await settled();
    }
    expect(open).toBe(0);
  }
  const change = (parts: Partial<ListedSubscription>) => (subscription = { ...subscription!, ...parts });
  const last = () => calls.slice(window).map(({ callbackUrl, auth }) => [callbackUrl, auth]);

  it('is asked about in the ledger where it has waited before, for the pace of a backlog', async () => {
    isStillQueued = false;
    await begin(1, 1001);
    expect([calls, asked]).toEqual([[], ['1']]);
  });

  it('is not asked about in the ledger where that took no second', async () => {
    await changeMeanwhile({});
    expect([last().length, asked]).toEqual([3, []]);
  });

  it('is sent after a second where the ledger still says so', async () => {
    await changeMeanwhile({}, 1001);
    expect([last().length, asked]).toEqual([3, ['8', '9', '10']]);
  });

  it('is left alone where it was cancelled meanwhile, or sent by another message of it', async () => {
    isStillQueued = false;
    await changeMeanwhile({}, 1001);
    expect([last(), asked, held, ended]).toEqual([[], ['8', '9', '10'], [], Array(window).fill('delivered')]);
  });

  it('stays locked until the ledger knows that it is to be repeated, or another message of it would be sent', async () => {
    state = 'waiting';
    void begin(0);
    await settled();
    calls[0]!.answer();
    for (let rounds = 0; rounds < 10 && open > 0; rounds++) await settled();
    expect([ended, steps]).toEqual([['waiting'], ['settled', 'released']]);
  });

  it.each<[string, number, () => void]>([
    ['that had its lock all the time', 1, () => {}],
    ['that got its lock late', 1, () => (mayLockLate = true)],
    [
      'of a subscription that is at most once',
      2,
      () => (subscription = { ...subscription!, deliveryGuarantee: 'at-most-once' }),
    ],
  ])('is sent again when the attempt before, %s, has released that', async (_, generation, prepare) => {
    prepare();
    state = 'waiting';
    onOutcome = () => {
      onOutcome = () => {};
      state = 'delivered';
      void begin(0, 0, generation + 1);
    };
    void begin(0, 0, generation);
    for (let rounds = 0; rounds < 20 && !(open === 0 && rounds > 1); rounds++) {
      for (const { answer } of calls) answer();
      await settled();
    }
    expect({ open, left, ended, steps }).toEqual({
      open: 0,
      left: [],
      ended: ['waiting', 'delivered'],
      steps: ['settled', 'released', 'settled', 'released'],
    });
  });

  it('is left to the attempt of the same message that is about to release its lock', async () => {
    state = 'waiting';
    onOutcome = () => void begin(0);
    void begin(0);
    await settled();
    calls[0]!.answer();
    for (let rounds = 0; rounds < 10 && open > 0; rounds++) await settled();
    expect([open, calls.length, left]).toEqual([0, 1, [1]]);
  });

  it.each<[string, () => void, { sent: string[]; held: HeldReason[]; ended: string[]; asked: number }]>([
    ['is sent where nothing changed', () => {}, { sent: ['http://old/'], held: [], ended: ['delivered'], asked: 1 }],
    [
      'is left alone where it was cancelled',
      () => (isStillQueued = false),
      { sent: [], held: [], ended: [], asked: 1 },
    ],
    [
      'goes to the new callback URL',
      () => (subscription = { ...subscription!, callbackUrl: 'http://new/', version: 2 }),
      { sent: ['http://new/'], held: [], ended: ['delivered'], asked: 3 },
    ],
    [
      'is held where its subscription was paused',
      () => (subscription = { ...subscription!, pausedAt: new Date(), version: 2 }),
      { sent: [], held: ['paused'], ended: [], asked: 1 },
    ],
  ])('for its lock, for more than a second, %s meanwhile', async (_, change, expected) => {
    let times = 0;
    onLock = () => {
      // The locks are slow both times: it is not sent later for that.
      waitedMs += 1001;
      if (++times === 1) change();
    };
    void begin(1);
    for (let rounds = 0; rounds < 10 && open > 0; rounds++) {
      for (const { answer } of calls) answer();
      await settled();
    }
    expect({ sent: calls.map(({ callbackUrl }) => callbackUrl), held, ended, asked: asked.length }).toEqual(expected);
    expect(open).toBe(0);
    expect(steps.filter((step) => step === 'released')).toHaveLength(times);
  });

  const atMostOnce = { deliveryGuarantee: 'at-most-once' } as const;
  it.each<[string, Partial<ListedSubscription>, () => void, boolean]>([
    ['is still wanted where nothing changed', {}, () => {}, true],
    ['is still wanted where nothing changed, at most once', atMostOnce, () => (isStillQueued = false), true],
    ['is not where it was cancelled', {}, () => (isStillQueued = false), false],
    ['is not where it was cancelled, at most once', atMostOnce, () => (isStillClaimed = false), false],
    ['is not where its subscription was deleted', {}, () => (subscription = undefined), false],
    ['is not where its subscription was paused', {}, () => change({ pausedAt: new Date() }), false],
    ['is not where its subscription was disabled', {}, () => change({ disabledAt: new Date() }), false],
    ['is not where its subscription has another URL', {}, () => change({ callbackUrl: 'http://new/' }), false],
    ['is not where its subscription has other credentials or keys', {}, () => change({ version: 2 }), false],
  ])('for a token %s meanwhile', async (_, parts, happen, isWanted) => {
    change(parts);
    void begin(1);
    await settled();
    happen();
    expect(await calls[0]!.caller.isStillWanted(new AbortController().signal)).toBe(isWanted);
    calls[0]!.answer();
    for (let rounds = 0; rounds < 10 && open > 0; rounds++) await settled();
    expect(open).toBe(0);
  });

  const inOrder = { ...atMostOnce, ordering: 'per-object' } as const;
  it.each<[string, boolean, Partial<ListedSubscription>, number]>([
    ['is sent in order where that stands', true, inOrder, 1],
    ['is not sent in order where that is over: the next one may have been', false, inOrder, 0],
    ['is sent without an order, late rather than never', false, atMostOnce, 1],
  ])('for its claim %s', async (_, stands, parts, times) => {
    change(parts);
    isStillClaimed = stands;
    onClaim = () => (waitedMs += 1001);
    void begin(1);
    for (let rounds = 0; rounds < 10; rounds++) await settled();
    expect(calls).toHaveLength(times);
    calls[0]?.answer();
    for (let rounds = 0; rounds < 10 && open > 0; rounds++) await settled();
    expect([open, ended.length]).toEqual([0, times]);
  });

  it.each<[string, () => void]>([
    ['was paused', () => change({ pausedAt: new Date() })],
    ['got another callback URL', () => change({ callbackUrl: 'http://new/', version: 2 })],
    ['was disabled', () => change({ disabledAt: new Date() })],
    ['was deleted', () => (subscription = undefined)],
  ])('for its claim goes back to wait where its subscription %s meanwhile', async (_, happen) => {
    change(atMostOnce);
    onClaim = () => {
      waitedMs += 1001;
      happen();
    };
    await run(begin(1));
    expect([calls, ended, from]).toEqual([[], ['waiting'], ['sending']]);
  });

  it('for its claim goes back to wait where it expired meanwhile: it is looked at anew, and ends', async () => {
    change(atMostOnce);
    onClaim = () => (waitedMs += 120_000);
    await run(begin(1, 0, 1, clock.now() + 60_000));
    expect([calls, ended, from]).toEqual([[], ['waiting'], ['sending']]);
  });

  it.each<[string, boolean]>([
    ['lock', true],
    ['look at its earlier calls', false],
  ])('for its %s goes back to wait where its subscription was paused meanwhile, at most once', async (_, isLock) => {
    change(atMostOnce);
    const pause = () => {
      waitedMs += 1001;
      change({ pausedAt: new Date() });
    };
    if (isLock) onLock = pause;
    else onLook = pause;
    await run(begin(1, 0, 2));
    expect([calls, ended, from, steps]).toEqual([[], ['waiting'], ['sending'], ['settled', 'released']]);
  });

  it('for its lock is sent at most once where nothing changed meanwhile', async () => {
    change(atMostOnce);
    onLock = () => (waitedMs += 9000);
    await run(begin(1, 0, 2));
    expect([calls.length, ended, from]).toEqual([1, ['delivered'], ['sending']]);
  });

  const minuteMs = 60_000;
  const guarantees: [string, () => void][] = [
    ['at least once', () => {}],
    ['at least once, without a lock', () => (mayLockLate = true)],
    ['at most once', () => change(atMostOnce)],
  ];
  describe.each(guarantees)('%s, while Postgres was away for minutes', (_, prepare) => {
    const away = (happen: () => void) => () => {
      [onAsk, waitedMs] = [() => {}, waitedMs + 5 * minuteMs];
      happen();
    };

    it.each<[string, boolean]>([
      ['for its text', true],
      ['for the answer whether it is still queued', false],
    ])(
      'and waited %s, is not sent where it has expired or was paused meanwhile, and is otherwise',
      async (_, isText) => {
        prepare();
        const beginAway = (nr: number, happen: () => void, expiresAt: number | null = null) => {
          if (!isText) onAsk = away(happen);
          return run(begin(nr, 1001, 1, expiresAt, isText ? away(happen) : undefined));
        };
        await beginAway(1, () => {});
        expect([calls.length, ended]).toEqual([1, ['delivered']]);
        await beginAway(2, () => {}, clock.now() + minuteMs);
        expect([calls.length, ended]).toEqual([1, ['delivered', 'expired']]);
        await beginAway(3, () => change({ pausedAt: new Date() }));
        expect([calls.length, held, ended]).toEqual([1, ['paused'], ['delivered', 'expired']]);
        expect(steps.filter((step) => step === 'given back')).toHaveLength(isText ? 3 : 0);
      },
    );
  });

  it('for its lock is sent from its place, without another wait for a lock, where it is still wanted', async () => {
    let locks = 0;
    onLock = () => ([locks, waitedMs] = [locks + 1, waitedMs + 1200]);
    for (let nr = 0; nr < window + 3; nr++) void begin(nr);
    for (let rounds = 0; rounds < 10; rounds++) await settled();
    expect([calls.length, locks, asked.length]).toEqual([window, window, window]);
    for (let rounds = 0; rounds < 20 && open > 0; rounds++) {
      for (const { answer } of calls) answer();
      await settled();
    }
    expect([open, calls.length, locks]).toEqual([0, window + 3, window + 3]);
  });

  it('for its lock, and then for the answer of the ledger for longer than that lasts, is sent when it has it again', async () => {
    lockMs = minuteMs;
    let locks = 0;
    onLock = () => ([locks, waitedMs] = [locks + 1, waitedMs + 1001]);
    onAsk = () => ([onAsk, waitedMs] = [() => {}, waitedMs + minuteMs]);
    await run(begin(1));
    expect([locks, calls.length, ended]).toEqual([2, 1, ['delivered']]);
    expect(steps).toEqual(['released', 'settled', 'released']);
  });

  it.each<[string, number, boolean]>([
    ['shorter than the lease that it was accepted with lasts, needs no lock', leaseMs / 2, false],
    ['longer, gets its lock like any other one: another process may send it by now', leaseMs, true],
  ])('with the process that accepted it, %s', async (_, waited, isLocked) => {
    mayLockLate = true;
    let locks = 0;
    onLock = () => locks++;
    await run(begin(1, waited));
    expect([locks, calls.length, ended]).toEqual([isLocked ? 1 : 0, 1, ['delivered']]);
  });

  it('for its token for longer than its lease lasts, without a lock, is not wanted any more', async () => {
    mayLockLate = true;
    void begin(1);
    await settled();
    waitedMs += leaseMs / 2;
    expect(await calls[0]!.caller.isStillWanted(new AbortController().signal)).toBe(true);
    waitedMs += leaseMs / 2;
    expect(await calls[0]!.caller.isStillWanted(new AbortController().signal)).toBe(false);
    calls[0]!.answer();
    for (let rounds = 0; rounds < 10 && open > 0; rounds++) await settled();
    expect(open).toBe(0);
  });

  it('for its token for longer than its lock lasts is not wanted any more: another process may have it', async () => {
    lockMs = minuteMs;
    void begin(1);
    await settled();
    waitedMs += minuteMs;
    expect(await calls[0]!.caller.isStillWanted(new AbortController().signal)).toBe(false);
    calls[0]!.answer();
    for (let rounds = 0; rounds < 10 && open > 0; rounds++) await settled();
    expect(open).toBe(0);
  });

  it('for its lock is not sent where it expired meanwhile', async () => {
    onLock = () => (waitedMs += minuteMs);
    await run(begin(1, 0, 1, clock.now() + minuteMs / 2));
    expect([calls, ended]).toEqual([[], ['expired']]);
  });

  it('for its lock, and then for the answer of the ledger, is not sent where it expired in that second wait', async () => {
    onLock = () => (waitedMs += minuteMs);
    onAsk = () => (waitedMs += minuteMs);
    await run(begin(1, 0, 1, clock.now() + 1.5 * minuteMs));
    expect([calls, ended]).toEqual([[], ['expired']]);
  });

  it('for its claim only for a moment is sent without a question', async () => {
    change(inOrder);
    isStillClaimed = false;
    void begin(1);
    await settled();
    expect(calls).toHaveLength(1);
    calls[0]!.answer();
    for (let rounds = 0; rounds < 10 && open > 0; rounds++) await settled();
    expect(open).toBe(0);
  });

  it('is held when its subscription was paused meanwhile', async () => {
    await changeMeanwhile({ pausedAt: new Date() });
    expect([last(), held]).toEqual([[], ['paused', 'paused', 'paused']]);
  });

  it.each<[string, Partial<ListedSubscription> | undefined]>([
    ['was paused', { pausedAt: new Date() }],
    ['got another callback URL', { callbackUrl: 'http://new/' }],
    ['was deleted', undefined],
  ])('gives back the place that it had waited for where its subscription %s meanwhile', async (_, changed) => {
    await changeMeanwhile(changed);
    let isDrained = false;
    void admission.drained().then(() => (isDrained = true));
    await settled();
    expect(isDrained).toBe(true);
  });

  it('is cancelled when its subscription was deleted meanwhile', async () => {
    await changeMeanwhile(undefined);
    expect([last(), ended.slice().toSorted().slice(0, 3)]).toEqual([[], ['cancelled', 'cancelled', 'cancelled']]);
  });

  it('fails when its subscription was disabled meanwhile, for the reason of those that the dispatcher ends', async () => {
    await changeMeanwhile({ disabledAt: new Date() });
    expect(reasons).toEqual(Array.from({ length: 3 }, () => subscriptionDisabled));
    expect([last(), ended.filter((state) => state === 'failed')]).toEqual([[], ['failed', 'failed', 'failed']]);
  });

  it('waits on for its turn when its subscription may have only one call open at a time by now', async () => {
    for (let nr = 0; nr < window + 3; nr++) void begin(nr);
    await settled();
    change({ maxConcurrency: 1 });
    for (const { answer } of calls) answer();
    for (let called = 1; called <= 3; called++) {
      for (let rounds = 0; rounds < 10; rounds++) await settled();
      expect(calls).toHaveLength(window + called);
      calls.at(-1)!.answer();
    }
    for (let rounds = 0; rounds < 10 && open > 0; rounds++) await settled();
    expect([open, held]).toEqual([0, []]);
  });

  it('is held when its subscription was given a rate meanwhile, also where it was released before', async () => {
    released = { isReleased: true, releasedWith: 1 };
    await changeMeanwhile({ ratePerSecond: 1, slowedWith: 2 });
    expect([last(), held]).toEqual([[], ['rate', 'rate', 'rate']]);
  });

  it('is sent when it was released by the rate that there is, whatever else was changed meanwhile', async () => {
    released = { isReleased: true, releasedWith: 1 };
    change({ ratePerSecond: 1, slowedWith: 1 });
    await changeMeanwhile({ auth: 'new', version: 2 });
    expect([last().length, held]).toEqual([3, []]);
  });

  it('goes to the new callback URL when that was changed meanwhile', async () => {
    await changeMeanwhile({ callbackUrl: 'http://new/' });
    expect(last()).toEqual(Array.from({ length: 3 }, () => ['http://new/', 'old']));
  });

  it('carries the new authorization when that was changed meanwhile', async () => {
    await changeMeanwhile({ auth: 'new' });
    expect(last()).toEqual(Array.from({ length: 3 }, () => ['http://old/', 'new']));
  });
});

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { Tally } from '../activity/tally.js';
import { readSettings } from '../config/settings.js';
import type { Delivery } from '../ledger/delivery.js';
import type { Outcome } from '../ledger/settle.service.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import { AttemptReporter } from './attempt-reporter.service.js';
import { attemptsCounted, attemptSeconds, callsNotMade, deliveredSeconds } from './delivery.counters.js';
import { AttemptStates, type AttemptState } from './attempt-states.js';
import { lowestIdAt } from '../ledger/partitions.js';
import { newDelivery } from '../../test/support/new-delivery.js';
import { noListeners } from '../../test/support/no-listeners.js';

Logger.overrideLogger(false);

class RecordingStates extends AttemptStates {
  readonly states = new Map<string, AttemptState>();
  readonly writes: string[] = [];
  put(delivery: Delivery, state: AttemptState): void {
    this.writes.push(`${nameOf(delivery)} ${state.status}`);
    this.states.set(nameOf(delivery), state);
  }
  remove(delivery: Delivery): void {
    this.writes.push(`${nameOf(delivery)} gone`);
    this.states.delete(nameOf(delivery));
  }
  get = (notificationId: string) => Promise.resolve(this.states.get(notificationId));
}

/** Accepted now. Its name is the end of the id of its notification. */
const delivery = (name: string, attempts = 0): Delivery =>
  newDelivery({ notificationId: lowestIdAt(Date.now()).slice(0, 24) + name, attempts, failures: attempts });
const nameOf = ({ notificationId }: Delivery) => notificationId.slice(24);

const attempt = {
  number: 1,
  startedAt: 0,
  durationMs: 1500,
  connectMs: null,
  firstByteMs: null,
  status: 503,
  error: 'HTTP 503',
  details: null,
};
const delivered: Outcome = { state: 'delivered', attempt: { ...attempt, status: 204, error: null } };
const waiting: Outcome = { state: 'waiting', delayMs: 25_000, attempt };
const timeoutMs = 10_000;

/** How often something was observed, and the sum, since the last look. */
function look(histogram: typeof attemptSeconds | typeof deliveredSeconds): () => Promise<Record<string, unknown>> {
  histogram.reset();
  return async () =>
    Object.fromEntries(
      (await histogram.get()).values
        .filter(({ metricName }) => metricName?.endsWith('_sum'))
        .map(({ labels, value }) => [Object.values(labels).join(), value]),
    );
}

describe('the times of an attempt', () => {
  it('are those of the call, by its answer, and of a success that since the acceptance, by the lane', async () => {
    vi.useFakeTimers({ now: Date.parse('2026-11-20T12:00:00Z') });
    const ledgerClock = { now: () => Date.now() } as LedgerClock;
    const reporter = new AttemptReporter(new RecordingStates(), ledgerClock, noListeners, new Tally(), {
      settings: readSettings({}),
    });
    const [calls, deliveries] = [look(attemptSeconds), look(deliveredSeconds)];
    const first = delivery('first');
    vi.advanceTimersByTime(2000);
    reporter.ended(first, 'at-least-once', waiting);
    vi.advanceTimersByTime(60_000);
    reporter.ended({ ...first, generation: 2, failures: 1 }, 'at-least-once', delivered);
    reporter.ended({ ...first, generation: 2 }, 'at-least-once', delivered);
    reporter.ended(delivery('at once'), 'at-least-once', { ...delivered, attempt: { ...attempt, status: null } });
    reporter.ended(delivery('abandoned'), 'at-least-once', { state: 'waiting', attempt: null, delayMs: 0 });
    expect(await calls()).toEqual({ '5xx': 1.5, '2xx': 3, none: 1.5 });
    expect(await deliveries()).toEqual({ slow: 62, due: 62, fresh: 0 });
    reporter.onModuleDestroy();
    vi.useRealTimers();
  });
});

describe('publish → delivered, as the overview shows it', () => {
  it('is of what was sent at once and of retries, not of replays or of what was to wait', () => {
    const tally = new Tally();
    const clock = { now: () => Date.now() } as LedgerClock;
    const settings = readSettings({});
    const reporter = new AttemptReporter(new RecordingStates(), clock, noListeners, tally, { settings });
    for (const parts of [
      { generation: 1 },
      { generation: 2, failures: 1 },
      { generation: 3, failures: 1, isReleased: true },
      { generation: 2 }, // scheduled, or made by a replay
      { generation: 2, isReleased: true }, // held before it was ever sent
      { generation: 2, replays: 1 },
      { generation: 3, replays: 1, failures: 1 },
      { generation: 3, replays: 1, isReleased: true },
    ])
      reporter.ended({ ...delivery('timed'), ...parts }, 'at-least-once', delivered);
    reporter.onModuleDestroy();
    const counted = (of: string) =>
      tallied.filter(({ kind }) => kind === of).reduce((sum, { counts }) => sum + counts.delivered, 0);
    const tallied = tally.empty();
    expect([counted('all'), counted('took')]).toEqual([8, 3]);
  });
});

describe('a call that was not made', () => {
  let reporter: AttemptReporter;

  beforeEach(() => {
    const ledgerClock = { now: () => Date.now() } as LedgerClock;
    reporter = new AttemptReporter(new RecordingStates(), ledgerClock, noListeners, new Tally(), {
      settings: readSettings({}),
    });
  });
  afterEach(() => {
    reporter.onModuleDestroy();
    vi.restoreAllMocks();
  });

  const reason = 'no token';
  it.each<[string, Outcome]>([
    ['waits', { state: 'waiting', attempt: null, delayMs: 1000, reason }],
    ['has expired', { state: 'expired', attempt: null, reason }],
  ])('is in the log with its reason where its delivery %s', (_, outcome) => {
    const warn = vi.spyOn(Logger.prototype, 'warn');
    const { notificationId, subscriptionId } = delivery('postponed');
    reporter.ended(newDelivery({ notificationId, subscriptionId }), 'at-least-once', outcome);
    const line = { event: 'delivery.not-called', notificationId, subscriptionId, outcome: outcome.state, reason };
    expect(warn.mock.calls).toEqual([[line]]);
  });

  it('is counted by itself, and neither that nor an abandoned one as an attempt', async () => {
    const sum = async (counter: typeof attemptsCounted | typeof callsNotMade) =>
      (await counter.get()).values.reduce((total, { value }) => total + value, 0);
    const counts = async () => [await sum(attemptsCounted), await sum(callsNotMade)] as const;
    const [attempts, notMade] = await counts();
    for (const outcome of [
      { state: 'waiting', attempt: null, delayMs: 1000, reason },
      { state: 'expired', attempt: null, reason },
      { state: 'waiting', attempt: null, delayMs: 0 },
      waiting,
    ] satisfies Outcome[])
      reporter.ended(delivery('counted'), 'at-least-once', outcome);
    expect(await counts()).toEqual([attempts + 1, notMade + 2]);
  });
});

describe('a call that was abandoned after it was sent', () => {
  it('is in the log, with what its receiver may ask about: no attempt says that it was made', () => {
    const ledgerClock = { now: () => Date.now() } as LedgerClock;
    const reporter = new AttemptReporter(new RecordingStates(), ledgerClock, noListeners, new Tally(), {
      settings: readSettings({}),
    });
    const warn = vi.spyOn(Logger.prototype, 'warn');
    const again = delivery('again', 2);
    const startedAt = '2026-11-20T12:00:00.000Z';
    const facts = { durationMs: 11_000.4, connectMs: null, firstByteMs: null, address: '192.0.2.1' };
    reporter.abandoned(again, Date.parse(startedAt), facts);
    const { notificationId, subscriptionId } = again;
    const ids = { notificationId, subscriptionId };
    const line = {
      event: 'delivery.abandoned',
      ...ids,
      attempt: 3,
      startedAt,
      durationMs: 11_000,
      address: '192.0.2.1',
    };
    expect(warn.mock.calls).toEqual([[line]]);
    warn.mockRestore();
    reporter.onModuleDestroy();
  });
});

describe('the live state of an attempt', () => {
  let states: RecordingStates;
  let reporter: AttemptReporter;

  beforeEach(() => {
    vi.useFakeTimers({ now: Date.parse('2026-11-20T12:00:00Z') });
    states = new RecordingStates();
    const ledgerClock = { now: () => Date.now() } as LedgerClock;
    reporter = new AttemptReporter(states, ledgerClock, noListeners, new Tally(), { settings: readSettings({}) });
  });
  afterEach(() => {
    reporter.onModuleDestroy();
    vi.useRealTimers();
  });

  it('is not written for a first call that is soon over', () => {
    for (const outcome of [delivered, { ...delivered, state: 'failed' } as const]) {
      const first = delivery('quick');
      reporter.started(first, 1, timeoutMs);
      vi.advanceTimersByTime(900);
      reporter.ended(first, 'at-least-once', outcome);
      vi.advanceTimersByTime(5000);
    }
    expect(states.writes).toEqual([]);
  });

  it('shows a first call that takes longer than a second, once, until it is over', () => {
    const [first, later] = [delivery('slow'), delivery('later')];
    reporter.started(first, 1, timeoutMs);
    vi.advanceTimersByTime(600);
    reporter.started(later, 1, timeoutMs);
    vi.advanceTimersByTime(700);
    expect(states.writes).toEqual(['slow sending']);
    expect(states.states.get('slow')).toEqual({
      attempt: 1,
      status: 'sending',
      lastStatus: null,
      lastError: null,
      startedAt: '2026-11-20T12:00:00.000Z',
      nextAttemptAt: null,
    });
    vi.advanceTimersByTime(5000);
    reporter.ended(first, 'at-least-once', delivered);
    expect(states.writes).toEqual(['slow sending', 'later sending', 'slow gone']);
  });

  it('tells of a failed first call that it waits, whether it was shown or not', () => {
    for (const openMs of [0, 2000]) {
      const first = delivery('failing');
      reporter.started(first, 1, timeoutMs);
      vi.advanceTimersByTime(openMs);
      reporter.ended(first, 'at-least-once', waiting);
      expect(states.states.get('failing')).toMatchObject({ attempt: 1, status: 'waiting', lastStatus: 503 });
    }
  });

  it('shows a further attempt from its start to its end', () => {
    const again = delivery('again', 1);
    reporter.started(again, 2, timeoutMs);
    reporter.ended(again, 'at-least-once', delivered);
    expect(states.writes).toEqual(['again sending', 'again gone']);
  });
});

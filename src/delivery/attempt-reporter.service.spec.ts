import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { readSettings } from '../config/settings.js';
import type { Delivery } from '../ledger/delivery.js';
import type { Outcome } from '../ledger/settle.service.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import { AttemptReporter } from './attempt-reporter.service.js';
import { AttemptStates, type AttemptState } from './attempt-states.js';
import { newDelivery } from '../../test/support/new-delivery.js';
import { noListeners } from '../../test/support/no-listeners.js';

Logger.overrideLogger(false);

class RecordingStates extends AttemptStates {
  readonly states = new Map<string, AttemptState>();
  readonly writes: string[] = [];
  put({ notificationId }: Delivery, state: AttemptState): void {
    this.writes.push(`${notificationId} ${state.status}`);
    this.states.set(notificationId, state);
  }
  remove({ notificationId }: Delivery): void {
    this.writes.push(`${notificationId} gone`);
    this.states.delete(notificationId);
  }
  get = (notificationId: string) => Promise.resolve(this.states.get(notificationId));
}

const delivery = (notificationId: string, attempts = 0): Delivery =>
  newDelivery({ notificationId, attempts, failures: attempts });

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

describe('the live state of an attempt', () => {
  let states: RecordingStates;
  let reporter: AttemptReporter;

  beforeEach(() => {
    jest.useFakeTimers({ now: Date.parse('2026-11-20T12:00:00Z') });
    states = new RecordingStates();
    const heartbeat = { ledgerNow: () => Date.now() } as Heartbeat;
    reporter = new AttemptReporter(states, heartbeat, noListeners, { settings: readSettings({}) });
  });
  afterEach(() => {
    reporter.onModuleDestroy();
    jest.useRealTimers();
  });

  it('is not written for a first call that is soon over', () => {
    for (const outcome of [delivered, { ...delivered, state: 'failed' } as const]) {
      const first = delivery('quick');
      reporter.started(first, 1, timeoutMs);
      jest.advanceTimersByTime(900);
      reporter.ended(first, 'at-least-once', outcome);
      jest.advanceTimersByTime(5000);
    }
    expect(states.writes).toEqual([]);
  });

  it('shows a first call that takes longer than a second, once, until it is over', () => {
    const [first, later] = [delivery('slow'), delivery('later')];
    reporter.started(first, 1, timeoutMs);
    jest.advanceTimersByTime(600);
    reporter.started(later, 1, timeoutMs);
    jest.advanceTimersByTime(700);
    expect(states.writes).toEqual(['slow sending']);
    expect(states.states.get('slow')).toEqual({
      attempt: 1,
      status: 'sending',
      lastStatus: null,
      lastError: null,
      startedAt: '2026-11-20T12:00:00.000Z',
      nextAttemptAt: null,
    });
    jest.advanceTimersByTime(5000);
    reporter.ended(first, 'at-least-once', delivered);
    expect(states.writes).toEqual(['slow sending', 'later sending', 'slow gone']);
  });

  it('tells of a failed first call that it waits, whether it was shown or not', () => {
    for (const openMs of [0, 2000]) {
      const first = delivery('failing');
      reporter.started(first, 1, timeoutMs);
      jest.advanceTimersByTime(openMs);
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

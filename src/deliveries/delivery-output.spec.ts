import { describe, expect, it } from 'vitest';
import type { AttemptState } from '../delivery/attempt-states.js';
import { deliveryStates } from '../ledger/delivery.js';
import { deliveryWithAttemptsToShow } from './delivery-output.js';
import type { KnownDelivery } from './delivery-reader.service.js';

const delivery: KnownDelivery = {
  notificationId: '019ac4c3-0000-7000-8000-000000000001',
  subscriptionId: '6d9e8d3f-9c5a-4b52-8f5a-0d7a3b6f1c11',
  channel: 'cases',
  acceptedAt: new Date(0),
  state: 'waiting',
  generation: 1,
  attempts: 7,
  failures: 7,
  replays: 0,
  nextAttemptAt: null,
  heldFor: null,
  heldSince: null,
  queuedAt: null,
  expiresAt: null,
  lastStatus: 400,
  lastError: null,
  endedAt: null,
  replayId: null,
};

function statesWith(live: AttemptState) {
  return deliveryStates.filter((state) => deliveryWithAttemptsToShow({ ...delivery, state }, [], live).live !== null);
}

describe('the live step of a delivery', () => {
  it('that waits, with what its receiver answered, is shown only while the delivery waits', () => {
    const nextAttemptAt = '2026-11-29T12:00:00.000Z';
    const lastError = 'HTTP 400: {"echo":"123456782"}';
    const live = { attempt: 7, status: 'waiting', lastStatus: 400, lastError, startedAt: null, nextAttemptAt } as const;
    expect(statesWith(live)).toEqual(['waiting']);
  });

  it('of a call is shown only while the delivery may be in the hands of a worker', () => {
    const startedAt = '2026-11-29T12:00:00.000Z';
    const none = { lastStatus: null, lastError: null, nextAttemptAt: null };
    const live = { attempt: 7, status: 'sending', startedAt, ...none } as const;
    expect(new Set(statesWith(live))).toEqual(new Set(['queued', 'sending']));
  });
});

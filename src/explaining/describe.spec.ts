import { describe, expect, it } from 'vitest';
import { describeJudgement } from './describe-judgement.js';
import { judge } from './judge.js';
import { describeSituation, type Around, type LedgerDelivery } from './situation.js';

const at = (text: string) => new Date(`2026-11-22T${text}Z`);
const delivery = (parts: Partial<LedgerDelivery>): LedgerDelivery => ({
  state: 'queued',
  heldFor: null,
  heldSince: null,
  nextAt: null,
  queuedAt: null,
  attempts: 0,
  failures: 0,
  replays: 0,
  expiresAt: null,
  lastStatus: null,
  lastError: null,
  endedAt: null,
  turnOf: null,
  ahead: 0,
  ...parts,
});
const endpoint = {
  address: 'https://receiver.example',
  openedAt: at('07:00:00'),
  reason: 'connect ECONNREFUSED',
  failures: 10,
  probes: 3,
  nextProbeAt: at('08:00:30'),
  leftAloneUntil: at('07:00:00'),
  askedUntil: null,
};
const around: Around = { endpoint: undefined, pausedAt: null, notBefore: null, now: at('08:00:00').getTime() };

describe('where a delivery is', () => {
  it.each<[Partial<LedgerDelivery>, Partial<Around>, string]>([
    [{ queuedAt: at('08:00:00') }, {}, 'It is in the queue since 2026-11-22T08:00:00.000Z.'],
    [{ nextAt: at('08:03:00') }, {}, 'A worker has it in hand; its lease ends at 2026-11-22T08:03:00.000Z.'],
    [
      { state: 'waiting', attempts: 2, failures: 2, nextAt: at('08:03:00'), lastError: 'HTTP 503' },
      {},
      'It waits for call 3, due at 2026-11-22T08:03:00.000Z (HTTP 503).',
    ],
    [
      { state: 'waiting', nextAt: at('09:00:00') },
      { notBefore: at('09:00:00') },
      'It is scheduled: its publisher asked for 2026-11-22T09:00:00.000Z.',
    ],
    [
      { state: 'held', heldFor: 'endpoint-parked', heldSince: at('07:30:00') },
      { endpoint },
      'It is held since 2026-11-22T07:30:00.000Z: the circuit breaker of https://receiver.example is open since 2026-11-22T07:00:00.000Z (connect ECONNREFUSED); the next probe is due at 2026-11-22T08:00:30.000Z.',
    ],
    [
      { state: 'held', heldFor: 'paused', heldSince: at('07:30:00') },
      { pausedAt: at('07:00:00') },
      'It is held since 2026-11-22T07:30:00.000Z: an operator paused its subscription at 2026-11-22T07:00:00.000Z.',
    ],
    [
      { state: 'held', heldFor: 'order', turnOf: 'a1', ahead: 2 },
      {},
      'It is held: it is behind a1 about the same object, and 2 others are before it in line.',
    ],
    [
      { state: 'delivered', attempts: 1, endedAt: at('08:00:00') },
      {},
      'It was delivered at 2026-11-22T08:00:00.000Z, after 1 call.',
    ],
    [
      { state: 'failed', attempts: 9, endedAt: at('08:00:00'), lastError: 'HTTP 500' },
      {},
      'It failed at 2026-11-22T08:00:00.000Z, after 9 calls (HTTP 500). It is kept as a dead letter.',
    ],
  ])('%j is told', (parts, more, expected) => {
    expect(describeSituation(delivery(parts), { ...around, ...more })).toBe(expected);
  });
});

describe('why a subscription gets a notification', () => {
  const characteristics = new Map([['kind', 'b']]);
  const told = (...filters: Record<string, string>[]) =>
    describeJudgement(
      judge(
        {
          existence: 'present',
          channels: filters.map((each) => ({ channel: 'cases', filters: each })),
          disabledAt: null,
        },
        { channel: 'cases', characteristics },
      ),
      'cases',
    );

  it('is told by the entry and the names', () => {
    expect(told({ kind: 'a' }, { kind: 'b', region: 'x' })).toBe(
      "It matched by entry 2, by kind 'b', region (which the notification does not have).",
    );
    expect(told({})).toBe('It matched by entry 1, which has no filters.');
    expect(told({ kind: 'a' })).toBe("No entry about cases was met: entry 1 wanted kind 'a', and it was 'b'.");
    expect(told(...Array.from({ length: 5 }, () => ({ kind: 'a' })))).toMatch(/entry 3 wanted .*; and 2 more\.$/);
    expect(told()).toBe('The subscription has no entry about cases.');
  });
});

import { describe, expect, it } from 'vitest';
import { defaultRetryPolicy } from '../retry-policy/retry-schedule.js';
import { decideOutcome, type Circumstances } from './decide-outcome.js';
import type { WebhookResponse } from './webhook-client.js';
import { abandoned, answered, postponed, unanswered } from '../../test/support/responses.js';

const now = Date.parse('2026-11-20T12:00:00Z');
const policy = defaultRetryPolicy;

const usual: Circumstances = {
  guarantee: 'at-least-once',
  number: 3,
  startedAt: now - 12,
  acceptedAt: now - 60_000,
  failures: 0,
  policy,
  finalStatuses: new Set([410, 415]),
  hasMoved: false,
  expiresAt: null,
  nowMs: now,
  random: 0,
};
const decide = (response: WebhookResponse, failures = 0) => decideOutcome(response, { ...usual, failures });

describe('what comes of an attempt', () => {
  it.each([200, 201, 202, 204, 206, 299])('%i is delivered', (status) => {
    expect(decide(answered(status, { connectMs: 3, firstByteMs: 9, address: '192.0.2.1:80' }))).toEqual({
      state: 'delivered',
      attempt: {
        number: 3,
        startedAt: now - 12,
        durationMs: 12,
        connectMs: 3,
        firstByteMs: 9,
        status,
        error: null,
        details: null,
      },
    });
  });

  it.each([300, 301, 302, 307, 308, 400, 401, 404, 408, 429, 500, 502, 503, 504, 599])('%i is retried', (status) => {
    expect(decide(answered(status))).toMatchObject({
      state: 'waiting',
      delayMs: 25_000,
      attempt: { number: 3, startedAt: now - 12, durationMs: 12, status, error: `HTTP ${status}` },
    });
  });

  it('no answer is retried, with the reason and without a status', () => {
    expect(decide(unanswered('ECONNREFUSED: nobody there'))).toMatchObject({
      state: 'waiting',
      attempt: { status: null, error: 'ECONNREFUSED: nobody there' },
    });
  });

  it.each([410, 415])('%i is final, however many retries are left', (status) => {
    expect(decide(answered(status))).toMatchObject({ state: 'failed', attempt: { status } });
  });

  it('final is what the installation says', () => {
    const decideWith = (status: number) =>
      decideOutcome(answered(status), { ...usual, finalStatuses: new Set([422]) }).state;
    expect([410, 415, 422].map(decideWith)).toEqual(['waiting', 'waiting', 'failed']);
  });

  it('a failure after the last retry is final, and not before', () => {
    expect(decide(answered(500), policy.maxRetries - 1)).toMatchObject({ state: 'waiting', delayMs: 52_000_000 });
    expect(decide(answered(500), policy.maxRetries)).toMatchObject({ state: 'failed', attempt: { status: 500 } });
    expect(decide(unanswered('ECONNRESET'), policy.maxRetries)).toMatchObject({ state: 'failed' });
  });

  it('what would be final is tried again at once where the subscription has another callback by now', () => {
    const moved = { ...usual, hasMoved: true };
    const last = { ...moved, failures: policy.maxRetries };
    const once = { state: 'waiting', delayMs: 0 };
    expect(decideOutcome(answered(410), moved)).toMatchObject({ ...once, attempt: { number: 3, status: 410 } });
    expect(decideOutcome(answered(500), last)).toMatchObject({ ...once, attempt: { number: 3, status: 500 } });
    expect(decideOutcome(unanswered('ECONNRESET'), last)).toMatchObject(once);
    expect(decideOutcome(answered(410), { ...moved, expiresAt: now })).toMatchObject({ state: 'expired' });
    // With tries left it waits as ever, and at most once it is not sent to two.
    expect(decideOutcome(answered(500), moved)).toMatchObject({ state: 'waiting', delayMs: 25_000 });
    expect(decideOutcome(answered(410), { ...moved, guarantee: 'at-most-once' })).toMatchObject({ state: 'failed' });
  });

  it('a success after the last retry is a success', () => {
    expect(decide(answered(204), policy.maxRetries + 5)).toMatchObject({ state: 'delivered' });
  });

  it('no retries allowed makes the first failure final', () => {
    expect(decideOutcome(answered(500), { ...usual, policy: { ...policy, maxRetries: 0 } })).toMatchObject({
      state: 'failed',
    });
  });

  it('the delay is that of the failures so far', () => {
    expect([0, 1, 2].map((failures) => decide(answered(503), failures))).toMatchObject([
      { delayMs: 25_000 },
      { delayMs: 100_000 },
      { delayMs: 400_000 },
    ]);
  });

  it.each([
    ['later than the schedule', 120_000, 120_000],
    ['earlier than the schedule', 3000, 25_000],
    ['at once', 0, 25_000],
    ['nothing', null, 25_000],
  ])('what the receiver asks (%s) is honoured, never sooner than the schedule', (_asked, askedMs, delayMs) => {
    for (const status of [429, 503, 302])
      expect(decide(answered(status, { askedDelayMs: askedMs }))).toMatchObject({ delayMs });
  });

  it('a Retry-After does not give a retry that the policy does not', () => {
    expect(decide(answered(503, { askedDelayMs: 1000 }), policy.maxRetries)).toMatchObject({ state: 'failed' });
  });

  it('of a failure the answer is kept, and in its error the beginning of the body', () => {
    const body = `<h1>Oops</h1>${'x'.repeat(4000)}`;
    const headers = { server: 'nginx', 'retry-after': '5' };
    expect(decide(answered(500, { headers, body, address: '[::1]:443' })).attempt).toMatchObject({
      error: `HTTP 500: ${body.slice(0, 500)}`,
      details: { address: '[::1]:443', headers, body },
    });
  });

  it('of a call without an answer is kept whether it was sent, and the address if there was one', () => {
    const { attempt } = decide({ ...unanswered('ECONNRESET'), address: '192.0.2.1:80' });
    expect(attempt?.details).toEqual({ address: '192.0.2.1:80', headers: null, body: null, wasSent: true });
    const unsent = decide({ ...unanswered('ECONNREFUSED', false), address: '192.0.2.1:80' });
    expect(unsent.attempt?.details).toEqual({ address: '192.0.2.1:80', headers: null, body: null });
    expect(decide(unanswered('ENOTFOUND', false)).attempt?.details).toBeNull();
  });

  it('a NUL character, which Postgres cannot store, is left out of what is kept', () => {
    const failed = decide(answered(500, { headers: { server: 'n\0x' }, body: 'a\0b\0' }));
    expect(failed.attempt).toMatchObject({
      error: 'HTTP 500: ab',
      details: { headers: { server: 'nx' }, body: 'ab' },
    });
    expect(decide(unanswered('\0no\0'))).toMatchObject({ attempt: { error: 'no' } });
  });

  it('half a character, which Postgres cannot store, is left out of what is kept', () => {
    const body = `${'x'.repeat(499)}😀`;
    expect(decide(answered(500, { body }))).toMatchObject({
      attempt: { error: `HTTP 500: ${'x'.repeat(499)}\ufffd`, details: { body } },
    });
    expect(decide(answered(500, { body: 'a\ud83d' }))).toMatchObject({ attempt: { details: { body: 'a\ufffd' } } });
    const cutInTheMiddle = unanswered(`${'x'.repeat(999)}😀`);
    expect(decide(cutInTheMiddle)).toMatchObject({ attempt: { error: `${'x'.repeat(999)}\ufffd` } });
  });

  it('a long reason is cut to 1000 characters', () => {
    expect(decide(unanswered('x'.repeat(5000)))).toMatchObject({ attempt: { error: 'x'.repeat(1000) } });
  });
});

describe('what comes of an attempt that may be the only one', () => {
  const decideOnce = (response: WebhookResponse, failures = 0) =>
    decideOutcome(response, { ...usual, guarantee: 'at-most-once', failures });

  it('is delivered by any 2xx', () => {
    expect(decideOnce(answered(202))).toMatchObject({ state: 'delivered' });
  });

  it.each([302, 400, 429, 500, 503])('has failed when the receiver answered %i: it saw it', (status) => {
    expect(decideOnce(answered(status))).toMatchObject({ state: 'failed', attempt: { status } });
  });

  it('is unknown when it was sent and nobody learnt what came of it', () => {
    expect(decideOnce(unanswered('no answer within 10 s'))).toMatchObject({ state: 'unknown' });
    expect(decideOnce(abandoned(true))).toMatchObject({ state: 'unknown' });
  });

  it('is repeated only when certainly nothing was sent', () => {
    expect(decideOnce(unanswered('ECONNREFUSED', false))).toMatchObject({ state: 'waiting', delayMs: 25_000 });
    expect(decideOnce(unanswered('ECONNREFUSED', false), policy.maxRetries)).toMatchObject({ state: 'failed' });
    expect(decideOnce(abandoned(false))).toEqual({ state: 'waiting', attempt: null, delayMs: 0 });
  });
});

describe('what comes of an attempt that a stopping worker ends', () => {
  it('is another attempt, at once, that costs nothing', () => {
    expect(decide(abandoned(true))).toEqual({ state: 'waiting', attempt: null, delayMs: 0 });
  });
});

describe('a delivery that is only worth sending for a while', () => {
  it('has expired when its next attempt would be too late', () => {
    const decideBy = (expiresAt: number) => decideOutcome(answered(500), { ...usual, expiresAt }).state;
    expect(decideBy(now + 25_000)).toBe('expired');
    expect(decideBy(now + 25_001)).toBe('waiting');
  });
});

describe('a call that could not be made, by no fault of its receiver', () => {
  const hourMs = 3_600_000;
  const spanMs = 86_125_000; // of the default policy
  const postpone = (forMs: number | null, changes: Partial<Circumstances> = {}) =>
    decideOutcome(postponed('no token', forMs), { ...usual, ...changes });

  it.each(['at-least-once', 'at-most-once'] as const)('costs no attempt (%s)', (guarantee) => {
    const outcome = { state: 'waiting', attempt: null, delayMs: 1000, reason: 'no token' };
    expect(postpone(0, { guarantee, failures: policy.maxRetries })).toEqual(outcome);
  });

  it('is looked at more seldom the longer it lasts, not by all at once, and never earlier than it may be better', () => {
    const delays = [0, 60_000, hourMs].map((forMs) => postpone(forMs));
    expect(delays.map((outcome) => 'delayMs' in outcome && outcome.delayMs)).toEqual([1000, 15_000, 300_000]);
    expect(postpone(0, { random: 0.5 })).toMatchObject({ delayMs: 1500 });
    expect(decideOutcome(postponed('no token', 0, 60_000), usual)).toMatchObject({ delayMs: 60_000 });
  });

  it('is given up when trouble and notification are both as old as the whole schedule', () => {
    expect(postpone(spanMs, { acceptedAt: now - spanMs + 1 })).toMatchObject({ state: 'waiting', attempt: null });
    expect(postpone(spanMs - 1, { acceptedAt: now - spanMs }).state).toBe('waiting');
    const outcome = postpone(spanMs, { acceptedAt: now - spanMs });
    expect(outcome).toMatchObject({ state: 'failed', attempt: { status: null, error: 'no token' } });
  });

  /**
   * Each call by a process that has just found the trouble. @returns seconds between these calls, until it is given up
   */
  function delaysOfOld(changes: Partial<Circumstances> = {}): number[] {
    const delays: number[] = [];
    const tried = () => postpone(0, { acceptedAt: now - spanMs, ...changes, failures: delays.length });
    let outcome = tried();
    for (; outcome.state === 'waiting'; outcome = tried()) {
      expect(outcome.attempt).toMatchObject({ status: null, error: 'no token' });
      delays.push(outcome.delayMs / 1000);
    }
    expect(outcome).toMatchObject({ state: 'failed', attempt: { error: 'no token' } });
    return delays;
  }

  it('costs attempts once its notification is as old as the whole schedule, whatever a process knows of the trouble', () => {
    expect(delaysOfOld()).toEqual([25, 100, 400, 1600, 6400, 25_600, 52_000]);
    expect(decideOutcome(postponed('no token', 0, 60_000), { ...usual, acceptedAt: 0 })).toMatchObject({
      delayMs: 60_000,
    });
  });

  it('costs them over an hour where the policy ends before, and never fewer than the policy has', () => {
    expect(delaysOfOld({ policy: { ...policy, maxRetries: 1 } })).toEqual(Array.from({ length: 12 }, () => 300));
    const manySoon = { ...policy, maxRetries: 20, backoffFactor: 1, baseFactor: 1 };
    expect(delaysOfOld({ policy: manySoon })).toHaveLength(20);
  });

  it('is never given up where that cannot be told, however old it is', () => {
    const outcome = { state: 'waiting', attempt: null, delayMs: 1000 };
    expect(postpone(null, { acceptedAt: 0, failures: policy.maxRetries })).toMatchObject(outcome);
  });

  it('is tried for an hour even where the policy has no retries', () => {
    const once = { ...policy, maxRetries: 0 };
    expect(postpone(hourMs - 1, { acceptedAt: 0, policy: once }).state).toBe('waiting');
    expect(postpone(hourMs, { acceptedAt: 0, policy: once }).state).toBe('failed');
  });

  it('is looked at again before it expires, however long the trouble has lasted, and the later the more often', () => {
    const delays: number[] = [];
    let nowMs = now;
    const expiresAt = now + 240_000;
    const looked = () => postpone(hourMs, { expiresAt, nowMs, random: 0.99 });
    let outcome = looked();
    for (; outcome.state === 'waiting'; outcome = looked()) {
      delays.push(outcome.delayMs);
      nowMs += outcome.delayMs;
    }
    expect(delays.slice(0, 3)).toEqual([120_000, 60_000, 30_000]);
    expect(delays.length).toBeLessThan(20);
    expect(expiresAt - nowMs).toBeLessThanOrEqual(1000);
  });

  it('expires, and says why it was not made, only where it cannot be better in time', () => {
    const expired = { state: 'expired', attempt: null, reason: 'no token' };
    expect(postpone(0, { expiresAt: now + 1000 })).toEqual(expired);
    expect(postpone(0, { expiresAt: now + 1001, random: 0.99 })).toMatchObject({ state: 'waiting', delayMs: 1000 });
    const later = (expiresAt: number) =>
      decideOutcome(postponed('no token', hourMs, 60_000), { ...usual, expiresAt, random: 0.99 });
    expect(later(now + 60_000)).toEqual(expired);
    expect(later(now + 60_001)).toMatchObject({ state: 'waiting', delayMs: 60_000 });
  });
});

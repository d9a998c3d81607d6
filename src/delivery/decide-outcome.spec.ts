import { describe, expect, it } from '@jest/globals';
import { defaultRetryPolicy } from '../retry-policy/retry-schedule.js';
import { decideOutcome, type Circumstances } from './decide-outcome.js';
import type { WebhookResponse } from './webhook-client.js';

const now = Date.parse('2026-11-20T12:00:00Z');
const policy = defaultRetryPolicy;

function answered(
  status: number,
  { retryAfter, excerpt = '' }: { retryAfter?: string; excerpt?: string } = {},
): WebhookResponse {
  return { kind: 'answered', status, retryAfter, durationMs: 12, excerpt };
}

const unanswered = (reason: string, wasSent = true): WebhookResponse => ({
  kind: 'unanswered',
  reason,
  durationMs: 12,
  wasSent,
});

const abandoned = (wasSent: boolean): WebhookResponse => ({ kind: 'abandoned', durationMs: 12, wasSent });

const usual: Circumstances = {
  guarantee: 'at-least-once',
  number: 3,
  startedAt: now - 12,
  failures: 0,
  policy,
  expiresAt: null,
  nowMs: now,
  random: 0,
};
const decide = (response: WebhookResponse, failures = 0) => decideOutcome(response, { ...usual, failures });

describe('what comes of an attempt', () => {
  it.each([200, 201, 202, 204, 206, 299])('%i is delivered', (status) => {
    expect(decide(answered(status, { excerpt: 'thanks' }))).toEqual({
      state: 'delivered',
      attempt: { number: 3, startedAt: now - 12, durationMs: 12, status, error: null },
    });
  });

  it.each([300, 301, 302, 307, 308, 400, 401, 404, 408, 429, 500, 502, 503, 504, 599])('%i is retried', (status) => {
    expect(decide(answered(status))).toEqual({
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

  it('410 is final, however many retries are left', () => {
    expect(decide(answered(410))).toMatchObject({ state: 'failed', attempt: { status: 410 } });
  });

  it('a failure after the last retry is final, and not before', () => {
    expect(decide(answered(500), policy.maxRetries - 1)).toMatchObject({ state: 'waiting', delayMs: 52_000_000 });
    expect(decide(answered(500), policy.maxRetries)).toMatchObject({ state: 'failed', attempt: { status: 500 } });
    expect(decide(unanswered('ECONNRESET'), policy.maxRetries)).toMatchObject({ state: 'failed' });
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
    ['later than the schedule', '120', 120_000],
    ['earlier than the schedule', '3', 25_000],
    ['at once', '0', 25_000],
    ['with a date', 'Fri, 20 Nov 2026 12:05:00 GMT', 300_000],
    ['with a date that is over', 'Fri, 20 Nov 2026 11:00:00 GMT', 25_000],
    ['in words', 'tomorrow', 25_000],
    ['with a negative number', '-60', 25_000],
    ['for more than a day', '90000', 86_400_000],
    ['for three centuries', '9999999999', 86_400_000],
    ['for longer than a number can say', '9'.repeat(400), 86_400_000],
    ['on a day that is far away', 'Fri, 20 Nov 2099 12:00:00 GMT', 86_400_000],
  ])('a Retry-After %s is honoured within reason, never sooner than the schedule', (_asked, retryAfter, delayMs) => {
    for (const status of [429, 503, 302]) expect(decide(answered(status, { retryAfter }))).toMatchObject({ delayMs });
  });

  it('a Retry-After does not give a retry that the policy does not', () => {
    expect(decide(answered(503, { retryAfter: '1' }), policy.maxRetries)).toMatchObject({ state: 'failed' });
  });

  it('the beginning of the answer is kept with a failure', () => {
    expect(decide(answered(500, { excerpt: '<h1>Oops</h1>' }))).toMatchObject({
      attempt: { error: 'HTTP 500: <h1>Oops</h1>' },
    });
  });

  it('a NUL character, which Postgres cannot store, is left out of what is kept', () => {
    expect(decide(answered(500, { excerpt: 'a\0b\0' }))).toMatchObject({ attempt: { error: 'HTTP 500: ab' } });
    expect(decide(unanswered('\0no\0'))).toMatchObject({ attempt: { error: 'no' } });
  });

  it('half a character, which Postgres cannot store, is left out of what is kept', () => {
    expect(decide(answered(410, { excerpt: 'a\ud83d' }))).toMatchObject({ attempt: { error: 'HTTP 410: a\ufffd' } });
    const cutInTheMiddle = unanswered(`${'x'.repeat(999)}😀`);
    expect(decide(cutInTheMiddle)).toMatchObject({ attempt: { error: `${'x'.repeat(999)}\ufffd` } });
  });

  it('a long text is cut to 1000 characters', () => {
    const outcome = decide(unanswered('x'.repeat(5000)));
    expect(outcome).toMatchObject({ attempt: { error: 'x'.repeat(1000) } });
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
    expect(decideOnce(unanswered('no complete answer within 10 s'))).toMatchObject({ state: 'unknown' });
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

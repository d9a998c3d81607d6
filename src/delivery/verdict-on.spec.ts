import { describe, expect, it } from '@jest/globals';
import { verdictOn } from './verdict-on.js';
import type { WebhookResponse } from './webhook-client.js';

const nowMs = Date.UTC(2015, 9, 21, 7, 26);
const answered = (status: number, retryAfter?: string): WebhookResponse => ({
  kind: 'answered',
  status,
  retryAfter,
  durationMs: 1,
  excerpt: '',
});
const unanswered = (reason: string): WebhookResponse => ({ kind: 'unanswered', reason, durationMs: 1, wasSent: false });

describe('what a response says of the endpoint', () => {
  it.each([200, 204, 302, 400, 404, 410])('is that it is well: %i', (status) => {
    expect(verdictOn(answered(status), nowMs)).toEqual({ kind: 'well' });
  });

  it.each([429, 500, 503])('is that its URL is in trouble: %i', (status) => {
    expect(verdictOn(answered(status), nowMs)).toMatchObject({ kind: 'troubled', reason: `HTTP ${status}` });
  });

  it('is that its origin is in trouble when nothing is answered', () => {
    expect(verdictOn(unanswered('ECONNRESET: read'), nowMs)).toEqual({
      kind: 'unanswered',
      reason: 'ECONNRESET: read',
    });
  });

  it('is nothing when we made no call, or ended it', () => {
    expect(verdictOn({ kind: 'abandoned', durationMs: 1, wasSent: true }, nowMs)).toEqual({ kind: 'none' });
    for (const reason of [
      'the address is not one callbacks may use',
      'the callback URL is not valid',
      'ADDRESS_REFUSED: 10.0.0.1 is not an address callbacks may use',
    ])
      expect(verdictOn(unanswered(reason), nowMs)).toEqual({ kind: 'none' });
  });

  it.each([
    [429, '120', 120_000],
    [503, 'Wed, 21 Oct 2015 07:28:00 GMT', 120_000],
    [503, '99999999', 86_400_000],
    [503, 'soon', undefined],
    [503, undefined, undefined],
    [500, '120', undefined],
  ])('is how long to leave it alone: %i with Retry-After %s', (status, retryAfter, askedDelayMs) => {
    expect(verdictOn(answered(status, retryAfter), nowMs)).toMatchObject({ askedDelayMs });
  });
});

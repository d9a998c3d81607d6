import { describe, expect, it } from 'vitest';
import { abandoned, answered, postponed, unanswered } from '../../test/support/responses.js';
import { verdictOn } from './verdict-on.js';

describe('what a response says of the endpoint', () => {
  it.each([200, 204, 302, 400, 404, 410])('is that it is well: %i', (status) => {
    expect(verdictOn(answered(status))).toEqual({ kind: 'well' });
  });

  it.each([429, 500, 503])('is that its URL is in trouble: %i', (status) => {
    expect(verdictOn(answered(status))).toMatchObject({ kind: 'troubled', reason: `HTTP ${status}` });
  });

  it('is that its origin is in trouble when nothing is answered', () => {
    expect(verdictOn(unanswered('ECONNRESET: read'))).toEqual({ kind: 'unanswered', reason: 'ECONNRESET: read' });
  });

  it('is that its URL is in trouble for calls with that TLS identity when the certificates were not taken', () => {
    const reason = 'CERT_HAS_EXPIRED: certificate has expired';
    expect(verdictOn(unanswered(reason, false, false, true))).toEqual({ kind: 'untrusted', reason });
  });

  it('is nothing when we made no call, or ended it', () => {
    expect(verdictOn(abandoned(true))).toEqual({ kind: 'none' });
    expect(verdictOn(postponed('no token', 0))).toEqual({ kind: 'none' });
  });

  it('is nothing when the trouble is our own', () => {
    expect(verdictOn(unanswered('EMFILE: too many open files', false, true))).toEqual({ kind: 'none' });
  });

  it.each([
    [429, 120_000, 120_000],
    [503, 120_000, 120_000],
    [503, null, undefined],
    [500, 120_000, undefined],
  ])('is how long to leave it alone: %i that asks for %s ms', (status, asked, askedDelayMs) => {
    expect(verdictOn(answered(status, { askedDelayMs: asked }))).toMatchObject({ askedDelayMs });
  });
});

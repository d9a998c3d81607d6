import type { Answered, CallFacts, WebhookResponse } from '../../src/delivery/webhook-client.js';

const facts: CallFacts = { durationMs: 12, connectMs: null, firstByteMs: null, address: null };

/** The report of a webhook client on a call, for tests that make no call. */
export const answered = (status: number, parts: Partial<Answered> = {}): Answered => ({
  kind: 'answered',
  status,
  headers: {},
  body: '',
  askedDelayMs: null,
  ...facts,
  ...parts,
});

export const unanswered = (reason: string, wasSent = true, isOurs = false, isUntrusted = false): WebhookResponse => ({
  kind: 'unanswered',
  reason,
  wasSent,
  isOurs,
  isUntrusted,
  ...facts,
});

export const abandoned = (wasSent: boolean): WebhookResponse => ({ kind: 'abandoned', wasSent, ...facts });

export const postponed = (reason: string, forMs: number | null, againInMs = 1000): WebhookResponse => ({
  kind: 'postponed',
  reason,
  forMs,
  againInMs,
  wasSent: false,
  ...facts,
});

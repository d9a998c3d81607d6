import type { CallFacts, WebhookResponse } from './webhook-client.js';

const noFacts: CallFacts = { durationMs: 0, connectMs: null, firstByteMs: null, address: null };

/** Its credentials, or a signing key, cannot be right: that counts as an attempt, and says nothing of the endpoint. */
export const notCalled = (reason: string): WebhookResponse => ({
  kind: 'unanswered',
  reason,
  wasSent: false,
  isOurs: true,
  isUntrusted: false,
  ...noFacts,
});

type Postponed = Pick<WebhookResponse & { kind: 'postponed' }, 'reason' | 'forMs' | 'againInMs'>;

export const postponedFor = ({ reason, forMs, againInMs }: Postponed): WebhookResponse => ({
  kind: 'postponed',
  reason,
  forMs,
  againInMs,
  wasSent: false,
  ...noFacts,
});

const unreadableAgainInMs = 30_000;

/**
 * Another process may be able to read its secrets, or this one after its next start: nothing is ever given up for that.
 */
export const unreadableFor = (reason: string): WebhookResponse =>
  postponedFor({ reason, forMs: null, againInMs: unreadableAgainInMs });

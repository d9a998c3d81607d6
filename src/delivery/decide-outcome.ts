import type { Attempt } from '../ledger/delivery.js';
import { delaySeconds, type RetryPolicy } from '../retry-policy/retry-schedule.js';
import { parseRetryAfter } from './retry-after.js';
import type { WebhookResponse } from './webhook-client.js';

/** What came of one attempt. */
export type DeliveryOutcome =
  | { kind: 'delivered'; attempt: Attempt }
  | { kind: 'retry'; attempt: Attempt; afterMs: number }
  /** No further attempt; an operator may have it sent again. */
  | { kind: 'failed'; attempt: Attempt }
  /** Not sent: the endpoint has no room, or this process is stopping. Costs no attempt. */
  | { kind: 'held'; afterMs: number }
  /** The subscription is gone. */
  | { kind: 'cancelled' };

/** A receiver may not ask for more: 24 hours. */
const maxRetryAfterMs = 86_400_000;
const maxErrorCharacters = 1000;

export interface Sent {
  response: Exclude<WebhookResponse, { kind: 'abandoned' }>;
  /** Counts from 1. */
  number: number;
  /** Milliseconds since 1970. */
  startedAt: number;
}

/**
 * @param failures failed attempts before this one that count for the schedule
 * @param random between 0 and 1, for the policy's jitter
 */
export function decideOutcome(
  sent: Sent,
  failures: number,
  policy: RetryPolicy,
  nowMs: number,
  random: number,
): DeliveryOutcome {
  const { response, number, startedAt } = sent;
  const status = response.kind === 'answered' ? response.status : null;
  const attempt: Attempt = { number, startedAt, durationMs: response.durationMs, status, error: errorOf(response) };
  if (status !== null && status >= 200 && status < 300) return { kind: 'delivered', attempt };
  // 410: the receiver says it is gone for good (Standard Webhooks; RFC 9110 §15.5.11).
  if (status === 410 || failures >= policy.maxRetries) return { kind: 'failed', attempt };
  const backoffMs = delaySeconds(policy, failures, random) * 1000;
  const askedMs = response.kind === 'answered' ? askedDelayMs(response.retryAfter, nowMs) : 0;
  return { kind: 'retry', attempt, afterMs: Math.max(backoffMs, askedMs) };
}

/** Never earlier than asked, within reason. */
function askedDelayMs(retryAfter: string | undefined, nowMs: number): number {
  if (retryAfter === undefined) return 0;
  return Math.min(maxRetryAfterMs, parseRetryAfter(retryAfter, nowMs) ?? 0);
}

function errorOf(response: Sent['response']): string | null {
  if (response.kind === 'answered') {
    return response.status < 300
      ? null
      : textOf(`HTTP ${response.status}${response.excerpt && `: ${response.excerpt}`}`);
  }
  return textOf(response.reason);
}

/**
 * Postgres stores neither a NUL character nor half of a surrogate pair, which a cut may leave; a receiver could send one
 * to keep its failures out of the ledger.
 */
function textOf(text: string): string {
  return text
    .replaceAll('\0', '')
    .slice(0, maxErrorCharacters)
    .replaceAll(/\p{Surrogate}/gu, '\ufffd');
}

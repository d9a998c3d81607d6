import type { Attempt } from '../ledger/delivery.js';
import { delaySeconds, type RetryPolicy } from '../retry-policy/retry-schedule.js';
import type { DeliveryGuarantee } from '../subscriptions/subscription.js';
import { parseRetryAfter } from './retry-after.js';
import type { WebhookResponse } from './webhook-client.js';

/** What came of one attempt. */
export type DeliveryOutcome =
  | { kind: 'delivered'; attempt: Attempt }
  | { kind: 'retry'; attempt: Attempt; afterMs: number }
  /** No further attempt; an operator may have it sent again. */
  | { kind: 'failed'; attempt: Attempt | null }
  /** At-most-once: it was sent, and nobody can tell whether it arrived. Never sent again by itself. */
  | { kind: 'unknown'; attempt: Attempt }
  /** No longer worth sending, and not delivered yet. */
  | { kind: 'expired'; attempt: Attempt | null }
  /** Not sent: the endpoint has no room, or this process is stopping. Costs no attempt. */
  | { kind: 'held'; afterMs: number }
  /** The subscription is gone. */
  | { kind: 'cancelled' };

/** A receiver may not ask for more: 24 hours. */
const maxRetryAfterMs = 86_400_000;
const maxErrorCharacters = 1000;

export interface Sent {
  response: WebhookResponse;
  /** Counts from 1. */
  number: number;
  /** Milliseconds since 1970. */
  startedAt: number;
  durationMs: number;
}

export interface Circumstances {
  guarantee: DeliveryGuarantee;
  /** Failed attempts before this one that count for the schedule. */
  failures: number;
  policy: RetryPolicy;
  /** Milliseconds since 1970, by the ledger's clock; null: it is worth sending for ever. */
  expiresAt: number | null;
  nowMs: number;
  /** Between 0 and 1, for the policy's jitter. */
  random: number;
}

export const isSuccess = (response: WebhookResponse): boolean =>
  response.kind === 'answered' && response.status >= 200 && response.status < 300;

/** Whether the receiver may have acted on the call although nobody learnt of it. */
const isAmbiguous = (response: WebhookResponse): boolean => response.kind !== 'answered' && response.wasSent;

export function decideOutcome(sent: Sent, circumstances: Circumstances): DeliveryOutcome {
  const { response, number, startedAt, durationMs } = sent;
  const { guarantee, failures, policy, expiresAt, nowMs, random } = circumstances;
  const status = response.kind === 'answered' ? response.status : null;
  const attempt: Attempt = { number, startedAt, durationMs, status, error: errorOf(response) };
  if (isSuccess(response)) return { kind: 'delivered', attempt };
  if (guarantee === 'at-most-once') {
    if (isAmbiguous(response)) return { kind: 'unknown', attempt };
    // The receiver saw it and refused it: to send it again would be a second time.
    if (response.kind === 'answered') return { kind: 'failed', attempt };
  }
  if (response.kind === 'abandoned') return { kind: 'held', afterMs: 0 };
  // 410: the receiver says it is gone for good (Standard Webhooks; RFC 9110 §15.5.11).
  if (status === 410 || failures >= policy.maxRetries) return { kind: 'failed', attempt };
  const backoffMs = delaySeconds(policy, failures, random) * 1000;
  const askedMs = response.kind === 'answered' ? askedDelayMs(response.retryAfter, nowMs) : 0;
  const afterMs = Math.max(backoffMs, askedMs);
  if (expiresAt !== null && nowMs + afterMs >= expiresAt) return { kind: 'expired', attempt };
  return { kind: 'retry', attempt, afterMs };
}

/** Never earlier than asked, within reason. */
function askedDelayMs(retryAfter: string | undefined, nowMs: number): number {
  if (retryAfter === undefined) return 0;
  return Math.min(maxRetryAfterMs, parseRetryAfter(retryAfter, nowMs) ?? 0);
}

function errorOf(response: WebhookResponse): string | null {
  if (response.kind === 'abandoned') return 'the worker stopped before the answer came';
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

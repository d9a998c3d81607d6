import type { Attempt, Outcome } from '../ledger/settle.service.js';
import { delaySeconds, type RetryPolicy } from '../retry-policy/retry-schedule.js';
import type { DeliveryGuarantee } from '../subscriptions/subscription.js';
import { parseRetryAfter } from './retry-after.js';
import type { WebhookResponse } from './webhook-client.js';

/** A receiver may not ask for more: 24 hours. */
const maxRetryAfterMs = 86_400_000;
const maxErrorCharacters = 1000;

export interface Circumstances {
  guarantee: DeliveryGuarantee;
  /** Of the attempt; counts from 1. */
  number: number;
  /** Of the attempt, in milliseconds since 1970. */
  startedAt: number;
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

/** Whether the receiver may have acted on the call, and this process will never know. */
const isAmbiguous = (response: WebhookResponse): boolean => response.kind !== 'answered' && response.wasSent;

/** The outcome of a delivery after one attempt. */
export function decideOutcome(response: WebhookResponse, circumstances: Circumstances): Outcome {
  const { guarantee, number, startedAt, failures, policy, expiresAt, nowMs, random } = circumstances;
  const status = response.kind === 'answered' ? response.status : null;
  const attempt: Attempt = { number, startedAt, durationMs: response.durationMs, status, error: errorOf(response) };
  if (isSuccess(response)) return { state: 'delivered', attempt };
  if (guarantee === 'at-most-once') {
    if (isAmbiguous(response)) return { state: 'unknown', attempt };
    // The receiver saw it and refused it: to send it again would be a second time.
    if (response.kind === 'answered') return { state: 'failed', attempt };
  }
  // Our own doing: another process sends it, and the receiver's failures do not count it.
  if (response.kind === 'abandoned') return { state: 'waiting', attempt: null, delayMs: 0 };
  // 410: the receiver says it is gone for good (Standard Webhooks; RFC 9110 §15.5.11).
  if (status === 410 || failures >= policy.maxRetries) return { state: 'failed', attempt };
  const backoffMs = delaySeconds(policy, failures, random) * 1000;
  const askedMs = response.kind === 'answered' ? askedDelayMs(response.retryAfter, nowMs) : 0;
  const delayMs = Math.max(backoffMs, askedMs);
  if (expiresAt !== null && nowMs + delayMs >= expiresAt) return { state: 'expired', attempt };
  return { state: 'waiting', attempt, delayMs };
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

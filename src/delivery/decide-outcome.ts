import { storableText } from '../infra/postgres/storable-text.js';
import type { Attempt, AttemptDetails, Outcome } from '../ledger/settle.service.js';
import { isSuccess } from '../outbound/success.js';
import {
  delaySeconds,
  longestParkedSeconds,
  policyForOurTrouble,
  type RetryPolicy,
} from '../retry-policy/retry-schedule.js';
import type { DeliveryGuarantee } from '../subscriptions/subscription.js';
import type { WebhookResponse } from './webhook-client.js';

const maxErrorCharacters = 1000;
/** Of the body; what is kept of it beyond that is in the details of the attempt. */
const maxExcerptCharacters = 500;

const longestPostponedMs = 300_000;
const spreadMs = 1000;

type Postponed = WebhookResponse & { kind: 'postponed' };

export interface Circumstances {
  guarantee: DeliveryGuarantee;
  /** Of the attempt; counts from 1. */
  number: number;
  /** Of the attempt, in milliseconds since 1970. */
  startedAt: number;
  /** Milliseconds since 1970 at which its notification was accepted. */
  acceptedAt: number;
  /** Failed attempts before this one that count for the schedule. */
  failures: number;
  policy: RetryPolicy;
  /** HTTP statuses after which it is not tried again. */
  finalStatuses: ReadonlySet<number>;
  /** Its subscription has another callback by now than the one that was called. */
  hasMoved: boolean;
  /** Milliseconds since 1970, by the ledger's clock; null: it is worth sending for ever. */
  expiresAt: number | null;
  nowMs: number;
  /** Between 0 and 1, for the policy's jitter. */
  random: number;
}

/** The receiver has its delivery. */
export const hasArrived = (response: WebhookResponse): boolean =>
  response.kind === 'answered' && isSuccess(response.status);

/** Whether the receiver may have acted on the call, and this process will never know. */
const isAmbiguous = (response: WebhookResponse): boolean => response.kind !== 'answered' && response.wasSent;

/** The outcome of a delivery after one attempt. */
export function decideOutcome(response: WebhookResponse, circumstances: Circumstances): Outcome {
  const { guarantee, failures, policy, hasMoved, expiresAt, nowMs, random } = circumstances;
  const attempt = attemptOf(response, circumstances);
  if (hasArrived(response)) return { state: 'delivered', attempt };
  if (guarantee === 'at-most-once') {
    if (isAmbiguous(response)) return { state: 'unknown', attempt };
    // The receiver saw it and refused it: to send it again would be a second time.
    if (response.kind === 'answered') return { state: 'failed', attempt };
  }
  // Our own doing: another process sends it, and the receiver's failures do not count it.
  if (response.kind === 'abandoned') return { state: 'waiting', attempt: null, delayMs: 0 };
  if (response.kind === 'postponed' && costsNoAttempt(response, circumstances))
    return postponed(response, circumstances);
  const schedule = response.kind === 'postponed' ? policyForOurTrouble(policy) : policy;
  const isLast = failures >= Math.max(policy.maxRetries, schedule.maxRetries);
  const isOver = isLast || isFinal(response, circumstances);
  // The callback that it has now was not asked: that one is called, once more at least.
  if (isOver && !hasMoved) return { state: 'failed', attempt };
  const backoffMs = delaySeconds(schedule, failures, random) * 1000;
  // Never earlier than asked, or than it may be better.
  const askedMs =
    response.kind === 'answered' ? response.askedDelayMs : response.kind === 'postponed' ? response.againInMs : null;
  const delayMs = isOver ? 0 : Math.max(backoffMs, askedMs ?? 0);
  if (expiresAt !== null && nowMs + delayMs >= expiresAt) return { state: 'expired', attempt };
  return { state: 'waiting', attempt, delayMs };
}

/** Nobody waits longer for it than the policy would have gone on trying. */
const spanMs = ({ policy }: Circumstances): number => longestParkedSeconds(policy) * 1000;

/**
 * As long as its notification is younger than the span of the policy. After that each process knows only how long the
 * trouble has lasted before its own eyes, and one that sees it seldom, or was started again, would never give it up
 * (docs/decisions/0075).
 */
const costsNoAttempt = ({ forMs }: Postponed, circumstances: Circumstances): boolean =>
  forMs === null || circumstances.nowMs - circumstances.acceptedAt < spanMs(circumstances);

/** Trying again is of no use, however many attempts are left. */
function isFinal(response: WebhookResponse, circumstances: Circumstances): boolean {
  if (response.kind === 'postponed') return response.forMs !== null && response.forMs >= spanMs(circumstances);
  return response.kind === 'answered' && circumstances.finalStatuses.has(response.status);
}

/**
 * It costs the receiver no attempt, which has no part in it. The longer it takes, the more deliveries wait: they come
 * back more seldom, and not together. A delivery that expires is looked at again in half of the time that it has left,
 * at the latest: the longer pause is for our sake, and must not end it.
 */
function postponed({ reason, forMs, againInMs }: Postponed, { expiresAt, nowMs, random }: Circumstances): Outcome {
  const leftMs = expiresAt === null ? Infinity : expiresAt - nowMs;
  const why = storableText(reason.slice(0, maxErrorCharacters));
  if (againInMs >= leftMs) return { state: 'expired', attempt: null, reason: why };
  const pauseMs = Math.max(againInMs, Math.min((forMs ?? 0) / 4, longestPostponedMs)) + random * spreadMs;
  const delayMs = Math.max(againInMs, Math.min(pauseMs, leftMs / 2));
  return { state: 'waiting', attempt: null, delayMs, reason: why };
}

function attemptOf(response: WebhookResponse, { number, startedAt }: Circumstances): Attempt {
  const { durationMs, connectMs, firstByteMs } = response;
  return {
    number,
    startedAt,
    durationMs,
    connectMs,
    firstByteMs,
    status: response.kind === 'answered' ? response.status : null,
    error: errorOf(response),
    details: hasArrived(response) ? null : detailsOf(response),
  };
}

/**
 * Nobody asks what a receiver said that took its delivery; of any other one, everything. Whether a call without an
 * answer was sent counts where the subscription is switched to at most once before the next one.
 */
function detailsOf(response: WebhookResponse): AttemptDetails | null {
  const { address } = response;
  if (isAmbiguous(response)) return { address, headers: null, body: null, wasSent: true };
  if (response.kind !== 'answered') return address === null ? null : { address, headers: null, body: null };
  const { headers, body } = response;
  const storable = Object.entries(headers).map(([name, value]) => [name, storableText(value)]);
  return { address, headers: Object.fromEntries(storable) as Record<string, string>, body: storableText(body) };
}

function errorOf(response: WebhookResponse): string | null {
  if (response.kind === 'abandoned') return 'the worker stopped before the answer came';
  if (hasArrived(response)) return null;
  if (response.kind !== 'answered') return storableText(response.reason.slice(0, maxErrorCharacters));
  const excerpt = response.body.slice(0, maxExcerptCharacters);
  return storableText(`HTTP ${response.status}${excerpt && `: ${excerpt}`}`);
}

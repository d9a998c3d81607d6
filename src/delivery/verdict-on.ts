import { none, well, type Verdict } from '../endpoints/verdict.js';
import { parseRetryAfter } from './retry-after.js';
import type { WebhookResponse } from './webhook-client.js';

/** A receiver may not ask for more: 24 hours. */
const longestAskedMs = 86_400_000;
/** The reason of a call that was never made: the webhook client refuses addresses that callbacks may not use. */
const notCalled = /callbacks may use$|^the callback URL is not valid$/;

/**
 * What a response says of the endpoint. One that answers is well, unless it asks for less (429) or is in trouble itself (5xx).
 * What we refused or ended ourselves says nothing.
 * @param nowMs milliseconds since 1970
 */
export function verdictOn(response: WebhookResponse, nowMs: number): Verdict {
  if (response.kind === 'abandoned') return none;
  if (response.kind === 'unanswered') {
    return notCalled.test(response.reason) ? none : { kind: 'unanswered', reason: response.reason };
  }
  const { status, retryAfter } = response;
  if (status < 500 && status !== 429) return well;
  const isAsked = (status === 429 || status === 503) && retryAfter !== undefined;
  const askedMs = isAsked ? parseRetryAfter(retryAfter, nowMs) : undefined;
  const askedDelayMs = askedMs === undefined ? undefined : Math.min(longestAskedMs, askedMs);
  return { kind: 'troubled', reason: `HTTP ${status}`, askedDelayMs };
}

import { none, well, type Verdict } from '../endpoints/verdict.js';
import type { WebhookResponse } from './webhook-client.js';

/**
 * The verdict of a response on the endpoint. One that answers is well, unless it asks for less (429) or is in trouble
 * itself (5xx). A call that we refused or ended ourselves, or had no means for, says nothing. Only with 429 and 503
 * does `Retry-After` speak of the endpoint (RFC 6585 §4, RFC 9110 §15.6.4); with another status it moves that delivery
 * alone.
 */
export function verdictOn(response: WebhookResponse): Verdict {
  if (response.kind === 'abandoned' || response.kind === 'postponed') return none;
  if (response.kind === 'unanswered') {
    if (response.isOurs) return none;
    return { kind: response.isUntrusted ? 'untrusted' : 'unanswered', reason: response.reason };
  }
  const { status } = response;
  if (status < 500 && status !== 429) return well;
  const askedDelayMs = status === 429 || status === 503 ? (response.askedDelayMs ?? undefined) : undefined;
  return { kind: 'troubled', reason: `HTTP ${status}`, askedDelayMs };
}

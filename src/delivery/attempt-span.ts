import type { Chunk } from '../queue/chunk.js';
import { firstAttemptSpanId, partsOf } from '../telemetry/trace-parent.js';
import type { OpenSpan, Tracer } from '../telemetry/tracing.js';
import type { DeliveryGuarantee, Subscription } from '../subscriptions/subscription.js';
import type { Loaded } from './chunk-loader.service.js';
import { parseUrl } from './parsed-url.js';
import type { WebhookResponse } from './webhook-client.js';

/**
 * The span of a call to a receiver, if its publication is traced: within that of the publication, however much later. A
 * further attempt is linked to the first, and so is a first call that used up none.
 * @param usedUpNone when such a call began, in milliseconds since 1970, by the clock of this machine
 */
export function beginAttempt(
  tracer: Tracer,
  delivery: Loaded,
  { callbackUrl }: Subscription,
  usedUpNone?: number,
): OpenSpan | undefined {
  const { traceParent: parent, notificationId, subscriptionId, attempts } = delivery;
  if (parent === undefined || !partsOf(parent).isSampled) return undefined;
  const first = firstAttemptSpanId(notificationId, subscriptionId);
  const url = parseUrl(callbackUrl);
  return tracer.begin('POST', {
    kind: 'client',
    parent,
    ...(usedUpNone !== undefined && { startedAt: usedUpNone }),
    ...(attempts === 0 && usedUpNone === undefined ? { spanId: first } : { linkedSpanIds: [first] }),
    attributes: {
      'http.request.method': 'POST',
      // Not the path: it may hold a secret of the receiver's.
      'server.address': url?.hostname ?? '',
      'heraut.notification.id': notificationId,
      'heraut.subscription.id': subscriptionId,
      'heraut.attempt': attempts + 1,
    },
  });
}

/**
 * Ends it with the response. A first call that used up no attempt is followed by another one, which is to have the id
 * of the first attempt: the span of this one is never ended, and one under another id tells of it. A receiver that saw
 * this call, because our own stop ended it, finds its span within the call that follows.
 * @param begunAnew of a first call, that other span
 */
export async function endAttempt(
  begun: OpenSpan,
  response: Promise<WebhookResponse>,
  guarantee: DeliveryGuarantee,
  begunAnew: (() => OpenSpan | undefined) | undefined,
): Promise<WebhookResponse> {
  const answer = await response;
  const span = begunAnew && usesUpNone(answer, guarantee) ? begunAnew() : begun;
  if (!span) return answer;
  if (answer.kind !== 'answered') span.end(undefined, answer.kind);
  else
    span.end({ 'http.response.status_code': answer.status }, answer.status < 400 ? undefined : String(answer.status));
  return answer;
}

/** Also where a call could not be made for so long that it counts at last: no receiver was told of its span. */
const usesUpNone = (answer: WebhookResponse, guarantee: DeliveryGuarantee): boolean =>
  answer.kind === 'postponed' || (answer.kind === 'abandoned' && !(answer.wasSent && guarantee === 'at-most-once'));

/**
 * A span for the time from the commit, or the hand-out, of each traced delivery to its worker.
 * @param waitedMs since then
 */
export function traceWaiting(tracer: Tracer, { deliveries }: Chunk, lane: string, waitedMs: number): void {
  for (const { traceParent: parent, notificationId, subscriptionId } of deliveries) {
    if (parent === undefined || !partsOf(parent).isSampled) continue;
    const attributes = {
      'heraut.lane': lane,
      'heraut.notification.id': notificationId,
      'heraut.subscription.id': subscriptionId,
    };
    tracer.begin('queue', { kind: 'consumer', parent, startedAt: Date.now() - waitedMs, attributes })?.end();
  }
}

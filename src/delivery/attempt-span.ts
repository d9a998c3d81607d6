import type { Chunk } from '../queue/chunk.js';
import { firstAttemptSpanId, partsOf } from '../telemetry/trace-parent.js';
import type { OpenSpan, Tracer } from '../telemetry/tracing.js';
import type { Subscription } from '../subscriptions/subscription.js';
import type { Loaded } from './chunk-loader.service.js';
import { parseUrl } from './parsed-url.js';
import type { WebhookResponse } from './webhook-client.js';

/**
 * The span of a call to a receiver, if its publication is traced: within that of the publication, however much later. A
 * further attempt is linked to the first.
 */
export function beginAttempt(tracer: Tracer, delivery: Loaded, { callbackUrl }: Subscription): OpenSpan | undefined {
  const { traceParent: parent, notificationId, subscriptionId, attempts } = delivery;
  if (parent === undefined || !partsOf(parent).isSampled) return undefined;
  const first = firstAttemptSpanId(notificationId, subscriptionId);
  const url = parseUrl(callbackUrl);
  return tracer.begin('POST', {
    kind: 'client',
    parent,
    ...(attempts === 0 ? { spanId: first } : { linkedSpanIds: [first] }),
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

/** Ends it with the response. */
export async function endAttempt(span: OpenSpan, response: Promise<WebhookResponse>): Promise<WebhookResponse> {
  const answer = await response;
  if (answer.kind !== 'answered') span.end(undefined, answer.kind);
  else
    span.end({ 'http.response.status_code': answer.status }, answer.status < 400 ? undefined : String(answer.status));
  return answer;
}

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

import type { Authorizations, Authorized } from '../credentials/authorizations.service.js';
import type { Unavailable } from '../credentials/unavailable.js';
import { signatureHeaders } from '../signing/signature-headers.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { notCalled, postponedFor, unreadableFor } from './not-called.js';
import type { WebhookClient, WebhookRequest, WebhookResponse } from './webhook-client.js';

/**
 * One call with all that its subscription has: an authorization that may have to be made first, a certificate, which may have ended,
 * own headers, and signatures. Never rejects.
 * @param at milliseconds since 1970, by the ledger's clock
 * @param begun is called when the receiver is
 */
export async function postAuthorized(
  webhooks: WebhookClient,
  authorizations: Authorizations,
  subscription: Authorized & Pick<Subscription, 'unreadable' | 'signingKeys'>,
  request: WebhookRequest,
  at: number,
  begun = () => {},
): Promise<WebhookResponse> {
  const { unreadable, credentials } = subscription;
  const { tls, headers } = credentials;
  if (unreadable !== null) return unreadableFor(unreadable);
  const expiresAt = tls?.expiresAt ?? Infinity;
  if (expiresAt <= at) return notCalled(`the client certificate ended at ${new Date(expiresAt).toISOString()}`);
  const startedAt = performance.now();
  // The other half, at least, is left for the receiver: it is not to blame for the time that a token took.
  const authorization = await within(request.timeoutMs / 2, authorizations.of(subscription));
  if (typeof authorization !== 'string')
    return authorization.isRefused ? notCalled(authorization.reason) : postponedFor(authorization);
  const tookMs = performance.now() - startedAt;
  const authorized = {
    ...request,
    headers: { ...headers, ...request.headers, authorization },
    tls,
    // Both together take no longer than the call may: the lease of the delivery counts on that.
    timeoutMs: Math.max(request.timeoutMs - tookMs, request.timeoutMs / 2),
  };
  const unsigned = sign(authorized, subscription, at + tookMs);
  if (unsigned) return unsigned;
  begun();
  const response = await webhooks.post(authorized);
  if (response.kind === 'answered' && response.status === 401) authorizations.refused(subscription, authorization);
  return response;
}

/**
 * Adds the signatures of its subscription, which mostly has no keys.
 * @param at milliseconds since 1970, by the ledger's clock
 * @returns what comes of a call that cannot be signed, and therefore is not made
 */
export function sign(
  { headers, body }: WebhookRequest,
  { signingKeys }: Pick<Subscription, 'signingKeys'>,
  at: number,
): WebhookResponse | undefined {
  if (signingKeys.length === 0) return undefined;
  try {
    Object.assign(headers, signatureHeaders(signingKeys, { id: headers['webhook-id']!, at, body }));
    return undefined;
  } catch (error) {
    return notCalled(`it cannot be signed, make another key: ${(error as Error).message}`);
  }
}

const late: Unavailable = {
  reason: 'the token endpoint has not answered within half the time of a call',
  isRefused: false,
  forMs: 0, // it is still asked; when that has failed, there is a reason
  againInMs: 1000,
};

/** One that is there at once costs no timer. */
async function within(ms: number, authorization: ReturnType<Authorizations['of']>): Promise<string | Unavailable> {
  if (!(authorization instanceof Promise)) return authorization;
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<Unavailable>((resolve) => (timer = setTimeout(() => resolve(late), ms)));
  try {
    return await Promise.race([authorization, tooLong]);
  } finally {
    clearTimeout(timer);
  }
}

import type { Authorizations, Authorized } from '../credentials/authorizations.service.js';
import type { Unavailable } from '../credentials/unavailable.js';
import { whyKeyUnusable } from '../credentials/usable-key.js';
import { signatureHeaders } from '../signing/signature-headers.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { freshMs } from './chunk-loader.service.js';
import { notCalled, postponedFor, unreadableFor } from './not-called.js';
import type { WebhookClient, WebhookRequest, WebhookResponse } from './webhook-client.js';

/** The party that wants a call. */
export interface Caller {
  /** The receiver is called now. */
  begun(): void;
  /**
   * Whether the call is still to be made after it waited for a token, for up to half of its time.
   * @param tooLate ends the question
   */
  isStillWanted(tooLate: AbortSignal): Promise<boolean>;
}

/**
 * One call with all that its subscription has: an authorization that may have to be made first, a certificate, which
 * may have ended, own headers, and signatures. Never rejects.
 * @param at milliseconds since 1970, by the ledger's clock
 */
export async function postAuthorized(
  webhooks: WebhookClient,
  authorizations: Authorizations,
  subscription: Authorized & Pick<Subscription, 'unreadable' | 'signingKeys'>,
  request: WebhookRequest,
  at: number,
  caller?: Caller,
): Promise<WebhookResponse> {
  const { unreadable, credentials } = subscription;
  const { tls, headers } = credentials;
  if (unreadable !== null) return unreadableFor(unreadable);
  const expiresAt = tls?.expiresAt ?? Infinity;
  if (expiresAt <= at) return notCalled(`the client certificate ended at ${new Date(expiresAt).toISOString()}`);
  const unusable = tls && whyKeyUnusable(tls);
  if (unusable) return notCalled(unusable);
  const startedAt = performance.now();
  // The other half, at least, is left for the receiver: it is not to blame for the time that a token took.
  const longestMs = request.timeoutMs / 2;
  const authorization = await within(longestMs, authorizations.of(subscription), late);
  if (typeof authorization !== 'string')
    return authorization.isRefused ? notCalled(authorization.reason) : postponedFor(authorization);
  const waitedMs = performance.now() - startedAt;
  if (waitedMs > freshMs && caller && !(await isStillWanted(caller, longestMs - waitedMs)))
    return postponedFor(unwanted);
  const tookMs = performance.now() - startedAt;
  const authorized: WebhookRequest = {
    ...request,
    headers: { ...headers, ...request.headers, authorization },
    tls,
    // Both together take no longer than the call may: the lease of the delivery counts on that.
    timeoutMs: Math.max(request.timeoutMs - tookMs, request.timeoutMs / 2),
  };
  if (authorization === '') delete authorized.headers.authorization;
  const unsigned = sign(authorized, subscription, at + tookMs);
  if (unsigned) return unsigned;
  caller?.begun();
  const response = await webhooks.post(authorized);
  if (response.kind === 'answered' && response.status === 401) authorizations.refused(subscription, authorization);
  return response;
}

/**
 * Adds the signatures of its subscription, which mostly has no keys.
 * @param at milliseconds since 1970, by the ledger's clock
 * @returns the outcome of a call that cannot be signed, and therefore is not made
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

/** If it is to be made after all, then with what is known of its subscription by then. It costs no attempt. */
const unwanted = {
  reason: 'the delivery or its subscription was changed, or could not be looked up, while the call waited for a token',
  forMs: null,
  againInMs: 0,
};

/** false also where nobody can say: it is asked again before the next call. */
async function isStillWanted(caller: Caller, ms: number): Promise<boolean> {
  const asking = new AbortController();
  try {
    // It rejects where this process stops, or after the time that it has.
    const answer = caller.isStillWanted(asking.signal).catch(() => false);
    return await within(ms, answer, false);
  } finally {
    asking.abort();
  }
}

/** One that is there at once costs no timer. */
async function within<T>(ms: number, awaited: T | Promise<T>, instead: T): Promise<T> {
  if (!(awaited instanceof Promise)) return awaited;
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<T>((resolve) => (timer = setTimeout(resolve, ms, instead)));
  try {
    return await Promise.race([awaited, tooLong]);
  } finally {
    clearTimeout(timer);
  }
}

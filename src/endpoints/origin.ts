import { calledBy } from '../subscriptions/called-url.js';
import { longestCallbackUrl } from '../subscriptions/subscription-limits.js';

/** Scheme, host and port of a callback URL; of one that is none, itself. */
export const originOf = (callbackUrl: string): string => calledBy(callbackUrl).origin;

/** Where calls go, and the TLS identity they are made with: of a subscription. */
export interface Callback {
  readonly callbackUrl: string;
  readonly credentials: { readonly tls?: { readonly id: string } };
}

/** Of an endpoint: that of a callback URL, and what is said of a TLS identity. */
export const longestAddress = longestCallbackUrl + 100;

/** Of a hash: enough to tell the identities apart that one URL is called with. */
const shownOfIdentity = 10;

/**
 * The endpoint that a callback URL is by itself, however it is spelt. One without a path has a slash more than its
 * origin, which may have other URLs. Called with a TLS identity of a subscription's own it is another endpoint: a
 * receiver that refuses the one may be well for the others (docs/decisions/0085).
 */
export function addressOf({ callbackUrl, credentials: { tls } }: Callback): string {
  const { url } = calledBy(callbackUrl);
  return tls ? `${url} with TLS identity ${tls.id.slice(0, shownOfIdentity)}` : url;
}

/** The endpoints that a callback leads to: its origin, and itself. */
export const endpointsOf = (callback: Callback): [origin: string, own: string] => [
  originOf(callback.callbackUrl),
  addressOf(callback),
];

/**
 * The endpoints that somebody means who gives an address, or a callback URL as it is shown, by what subscriptions lead
 * to: the address as it reads, else the URL however it is spelt, else that URL with each TLS identity that it is called
 * with. Undefined where none leads to any of these.
 */
export function endpointsMeant(given: string, callbacks: readonly Callback[]): ReadonlySet<string> | undefined {
  const { url } = calledBy(given);
  const own = new Set<string>();
  for (const callback of callbacks) {
    if (endpointsOf(callback).includes(given)) return new Set([given]);
    if (calledBy(callback.callbackUrl).url === url) own.add(addressOf(callback));
  }
  if (own.size === 0) return undefined;
  return own.has(url) ? new Set([url]) : own;
}

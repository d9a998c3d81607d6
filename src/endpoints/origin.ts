import { LRUCache } from 'lru-cache';
import { longestCallbackUrl } from '../subscriptions/subscription-limits.js';

/** Parsing a URL costs more than all else that is done to find an endpoint. */
const known = new LRUCache<string, string>({ max: 10_000 });

/** Scheme, host and port of a callback URL; of one that is none, itself. */
export function originOf(callbackUrl: string): string {
  let origin = known.get(callbackUrl);
  if (origin === undefined) {
    origin = URL.canParse(callbackUrl) ? new URL(callbackUrl).origin : callbackUrl;
    known.set(callbackUrl, origin);
  }
  return origin;
}

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
 * The endpoint that a callback URL is by itself. One without a path reads like its origin, which may have other URLs.
 * Called with a TLS identity of a subscription's own it is another endpoint: a receiver that refuses the one may be
 * well for the others (docs/decisions/0085).
 */
export function addressOf({ callbackUrl, credentials: { tls } }: Callback): string {
  const url = originOf(callbackUrl) === callbackUrl ? `${callbackUrl}/` : callbackUrl;
  return tls ? `${url} with TLS identity ${tls.id.slice(0, shownOfIdentity)}` : url;
}

/** The endpoints that a callback leads to: its origin, and itself. */
export const endpointsOf = (callback: Callback): [origin: string, own: string] => [
  originOf(callback.callbackUrl),
  addressOf(callback),
];

import { LRUCache } from 'lru-cache';
import { longestCallbackUrl } from '../subscriptions/subscription-limits.js';

/** Parsing a URL costs more than all else that is done to find an endpoint. */
const known = new LRUCache<string, Called>({ max: 10_000 });

interface Called {
  origin: string;
  /** All that a call is told by: one URL may be spelt in several ways. */
  url: string;
}

function calledBy(callbackUrl: string): Called {
  let called = known.get(callbackUrl);
  if (called === undefined) {
    called = parse(callbackUrl);
    known.set(callbackUrl, called);
  }
  return called;
}

function parse(callbackUrl: string): Called {
  if (!URL.canParse(callbackUrl)) return { origin: callbackUrl, url: `${callbackUrl}/` };
  const { origin, pathname, search } = new URL(callbackUrl);
  const url = origin + pathname + search;
  // Letters beyond ASCII become escapes of several: an address has to fit an index, and no other spelling is as long.
  return { origin, url: url.length > longestCallbackUrl ? callbackUrl : url };
}

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

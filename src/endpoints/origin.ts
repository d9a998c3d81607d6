import { LRUCache } from 'lru-cache';

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

/** The endpoint that a callback URL is by itself. One without a path reads like its origin, which may have other URLs. */
export function addressOf(callbackUrl: string): string {
  return originOf(callbackUrl) === callbackUrl ? `${callbackUrl}/` : callbackUrl;
}

/** The endpoints that a callback URL leads to: its origin, and itself. */
export const endpointsOf = (callbackUrl: string): [origin: string, url: string] => [
  originOf(callbackUrl),
  addressOf(callbackUrl),
];

import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { longestCallbackUrl } from './subscription-limits.js';

/** Parsing a URL costs more than all else that is done to find an endpoint. */
const known = new LRUCache<string, Called>({ max: 10_000 });

interface Called {
  origin: string;
  /** Distinguishes one call from another: one URL may be spelt in several ways. */
  url: string;
}

export function calledBy(callbackUrl: string): Called {
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
  if (url.length > longestCallbackUrl) return { origin, url: shortened(url) };
  // Nearly always the same: not a second copy of it.
  return { origin, url: url === callbackUrl ? callbackUrl : url };
}

/** Of the address of a URL that is too long, with its letters as escapes. */
const longestBeginning = 1980;

/** An address has to fit an index, and to be the same however its URL is spelt. A URL has no spaces. */
function shortened(url: string): string {
  const hash = createHash('sha256').update(url).digest('base64url');
  return `${url.slice(0, longestBeginning)} and more ${hash}`;
}

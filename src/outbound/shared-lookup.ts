import { LRUCache } from 'lru-cache';
import type { LookupFunction } from 'node:net';
import type { LookupBounds } from './lookup-bounds.js';

type Callback = Parameters<LookupFunction>[2];

/** A name that took longer to be looked up is slow until it is quick again: its servers do not answer, or hardly. */
const slowMs = 1000;
/**
 * After a slow look-up, a domain has to be quick for so long until its names count as quick again: who owns it could
 * have them be quick now and then.
 */
const slowDomainMs = 600_000;
/** In line for a look-up. Well below the time of a call, which would end as if its receiver had not answered. */
const longestInLineMs = 3000;

/** The code of the error of a name that waited for others for too long: nothing is known of it. */
export const lookupBusy = 'LOOKUP_BUSY';

export const tooManyLookups = (): Error =>
  Object.assign(new Error('too many names are being looked up'), { code: lookupBusy });

export interface SharedLookup {
  lookUp: LookupFunction;
  /** Whether it waits until fewer others are asked for. */
  isInLine: (hostname: string) => boolean;
}

/** One name that is being asked for, or waits for that; by what was known of it when it was wanted. */
interface Ask {
  hostname: string;
  domain: string;
  /** `distrusted`: it was quick itself, and another one of its domain was slow. */
  kind: 'quick' | 'distrusted' | 'unknown' | 'slow';
  start: () => void;
  /** While it waits. */
  givingUp?: NodeJS.Timeout;
}

/**
 * Asks for the addresses of a name once for all that want them at the same time. The operating system is asked on
 * threads of which Node lets few wait for names (libuv: half of UV_THREADPOOL_SIZE). A name whose servers do not answer
 * keeps one for ten seconds or more: the names of a domain that has fallen silent would keep all of them, and no
 * connection to any other name would come about.
 * @param now milliseconds, monotonic
 */
export function sharedLookup(
  lookUp: LookupFunction,
  bounds: LookupBounds,
  now: () => number = () => performance.now(),
): SharedLookup {
  const waiting = new Map<string, Callback[]>();
  const known = new LRUCache<string, 'quick' | 'slow'>({ max: 10_000 });
  /** When a look-up of one of their names was slow last. */
  const slowDomains = new LRUCache<string, number>({ max: 10_000 });
  const asked = new Set<Ask>();
  const inLine: Ask[] = [];
  /** One that is wanted in several ways stands there several times. */
  const namesInLine = new Map<string, number>();

  const leaveLine = (ask: Ask) => {
    inLine.splice(inLine.indexOf(ask), 1);
    count(namesInLine, ask.hostname, -1);
  };
  /** One that has ended may have kept several waiting: one for its thread, another one for its domain. */
  const startNext = () => {
    for (;;) {
      const next = inLine.find((ask) => hasRoomFor(ask, asked, bounds));
      if (!next) return;
      leaveLine(next);
      next.start();
    }
  };
  const kindOf = (hostname: string, domain: string): Ask['kind'] => {
    const kind = known.get(hostname) ?? 'unknown';
    const isTrusted = now() - (slowDomains.get(domain) ?? -Infinity) > slowDomainMs;
    return kind === 'quick' && !isTrusted ? 'distrusted' : kind;
  };
  const askFor = (hostname: string, options: Parameters<LookupFunction>[1], tell: Callback) => {
    const start = () => {
      clearTimeout(ask.givingUp);
      const startedAt = now();
      asked.add(ask);
      const end: Callback = (...answer) => {
        const isSlow = now() - startedAt > slowMs;
        known.set(hostname, isSlow ? 'slow' : 'quick');
        if (isSlow) slowDomains.set(domain, now());
        asked.delete(ask);
        startNext();
        tell(...answer);
      };
      try {
        lookUp(hostname, options, end);
      } catch (error) {
        end(error as NodeJS.ErrnoException, ''); // it would never be answered
      }
    };
    const domain = domainOf(hostname);
    const ask: Ask = { hostname, domain, kind: kindOf(hostname, domain), start };
    if (hasRoomFor(ask, asked, bounds)) return start();
    inLine.push(ask);
    count(namesInLine, hostname, 1);
    const giveUp = () => {
      leaveLine(ask);
      tell(tooManyLookups() as NodeJS.ErrnoException, '');
    };
    ask.givingUp = setTimeout(giveUp, longestInLineMs).unref();
  };
  const shared: LookupFunction = (hostname, options, callback) => {
    const key = `${hostname} ${JSON.stringify(options)}`;
    const others = waiting.get(key);
    if (others) return void others.push(callback);
    waiting.set(key, [callback]);
    askFor(hostname, options, (...answer) => {
      const all = waiting.get(key)!;
      waiting.delete(key);
      for (const each of all) each(...answer);
    });
  };
  return { lookUp: shared, isInLine: (hostname) => namesInLine.has(hostname) };
}

/** @param asked those that are being asked for: no more than there are threads */
function hasRoomFor({ kind, domain }: Ask, asked: ReadonlySet<Ask>, bounds: LookupBounds): boolean {
  if (asked.size >= bounds.all) return false;
  const ofDomain = [...asked].filter((each) => each.domain === domain);
  if (ofDomain.length >= (asked.size < bounds.shared ? bounds.ofDomain : 1)) return false;
  if (kind === 'quick') return true;
  if (kind === 'slow' && [...asked].filter((each) => each.kind === 'slow').length >= bounds.slow) return false;
  if ([...asked].filter(isUnproven).length >= bounds.unproven) return false;
  // One that was quick itself may be had although those of its domain that hang keep all places of theirs.
  return kind === 'distrusted' || ofDomain.filter(isUnproven).length < bounds.unprovenOfDomain;
}

const isUnproven = ({ kind }: Ask): boolean => kind !== 'quick';

/** Keeps no key that stands for none. */
function count(counts: Map<string, number>, key: string, one: 1 | -1): void {
  const left = (counts.get(key) ?? 0) + one;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}

/** Its last two labels. Under `co.uk` many owners share those, and their names wait for each other. */
const domainOf = (hostname: string): string => hostname.split('.').filter(Boolean).slice(-2).join('.').toLowerCase();

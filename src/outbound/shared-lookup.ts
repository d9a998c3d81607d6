import { LRUCache } from 'lru-cache';
import type { LookupFunction } from 'node:net';
import type { LookupBounds } from './lookup-bounds.js';

type Callback = Parameters<LookupFunction>[2];

/** A name that took longer to be looked up is slow until it is quick again: its servers do not answer, or hardly. */
const slowMs = 1000;
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
  kind: 'quick' | 'unknown' | 'slow';
  start: () => void;
  /** While it waits. */
  givingUp?: NodeJS.Timeout;
}

/**
 * Asks for the addresses of a name once for all that want them at the same time. The operating system is asked on threads of which Node lets few wait
 * for names (libuv: half of UV_THREADPOOL_SIZE). A name whose servers do not answer keeps one for ten seconds or more: the names of a domain
 * that has fallen silent would keep all of them, and no connection to any other name would come about.
 * @param now milliseconds, monotonic
 */
export function sharedLookup(
  lookUp: LookupFunction,
  bounds: LookupBounds,
  now: () => number = () => performance.now(),
): SharedLookup {
  const waiting = new Map<string, Callback[]>();
  const known = new LRUCache<string, 'quick' | 'slow'>({ max: 10_000 });
  const asked = new Asked(bounds);
  const inLine: Ask[] = [];
  /** One that is wanted in several ways stands there several times. */
  const namesInLine = new Map<string, number>();

  const leaveLine = (ask: Ask) => {
    inLine.splice(inLine.indexOf(ask), 1);
    count(namesInLine, ask.hostname, -1);
  };
  const startNext = () => {
    const next = inLine.find((ask) => asked.hasRoomFor(ask));
    if (!next) return;
    leaveLine(next);
    next.start();
  };
  const askFor = (hostname: string, options: Parameters<LookupFunction>[1], tell: Callback) => {
    const start = () => {
      clearTimeout(ask.givingUp);
      const startedAt = now();
      asked.add(ask, 1);
      const end: Callback = (...answer) => {
        known.set(hostname, now() - startedAt > slowMs ? 'slow' : 'quick');
        asked.add(ask, -1);
        startNext();
        tell(...answer);
      };
      try {
        lookUp(hostname, options, end);
      } catch (error) {
        end(error as NodeJS.ErrnoException, ''); // it would never be answered
      }
    };
    const ask: Ask = { hostname, domain: domainOf(hostname), kind: known.get(hostname) ?? 'unknown', start };
    if (asked.hasRoomFor(ask)) return start();
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

/** How many names are being asked for. */
class Asked {
  private all = 0;
  private slow = 0;
  private unproven = 0;
  /** By kind and domain; quick ones apart, so that no other name of their domain keeps them waiting. */
  private readonly ofDomain = new Map<string, number>();

  constructor(private readonly bounds: LookupBounds) {}

  hasRoomFor(ask: Ask): boolean {
    const { bounds } = this;
    if (this.all >= bounds.all) return false;
    const ofDomain = this.ofDomain.get(domainKeyOf(ask)) ?? 0;
    if (ask.kind === 'quick') return ofDomain < bounds.quickOfDomain;
    if (ask.kind === 'slow' && this.slow >= bounds.slow) return false;
    return this.unproven < bounds.unproven && ofDomain < bounds.unprovenOfDomain;
  }

  add(ask: Ask, one: 1 | -1): void {
    this.all += one;
    if (ask.kind === 'slow') this.slow += one;
    if (ask.kind !== 'quick') this.unproven += one;
    count(this.ofDomain, domainKeyOf(ask), one);
  }
}

/** Keeps no key that stands for none. */
function count(counts: Map<string, number>, key: string, one: 1 | -1): void {
  const left = (counts.get(key) ?? 0) + one;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}

const domainKeyOf = ({ kind, domain }: Ask): string => `${kind === 'quick' ? 'quick' : 'unproven'} ${domain}`;

/** Its last two labels. Under `co.uk` many owners share those, and their names wait for each other while they are unproven. */
const domainOf = (hostname: string): string => hostname.split('.').filter(Boolean).slice(-2).join('.').toLowerCase();

import { LRUCache } from 'lru-cache';
import type { LookupFunction } from 'node:net';

type Callback = Parameters<LookupFunction>[2];

/** A name that took longer to be looked up is slow until it is quick again: its servers do not answer, or hardly. */
const slowMs = 1000;

export interface SharedLookupOptions {
  /** How many slow names may be asked for at the same time. The others of them wait. */
  mostSlow: number;
  /** Milliseconds, monotonic. */
  now?: () => number;
}

/**
 * Asks for the addresses of a name once for all that want them at the same time. The operating system is asked on threads of which Node lets few wait
 * for names (libuv: half of UV_THREADPOOL_SIZE). A name whose servers do not answer keeps one for ten seconds or more: its calls would keep
 * all of them, and so would as many such names as there are threads. Then no connection to any other name would come about.
 */
export function sharedLookup(
  lookUp: LookupFunction,
  { mostSlow, now = () => performance.now() }: SharedLookupOptions,
): LookupFunction {
  const waiting = new Map<string, Callback[]>();
  const slow = new LRUCache<string, true>({ max: 10_000 });
  const inLine: (() => void)[] = [];
  let slowAsked = 0;

  const answerAll = (key: string, ...answer: Parameters<Callback>) => {
    const all = waiting.get(key)!;
    waiting.delete(key);
    for (const each of all) each(...answer);
  };
  return (hostname, options, callback) => {
    const key = `${hostname} ${JSON.stringify(options)}`;
    const others = waiting.get(key);
    if (others) return void others.push(callback);
    waiting.set(key, [callback]);
    const isSlow = slow.has(hostname);
    const end = (askedAt: number) => {
      if (now() - askedAt > slowMs) slow.set(hostname, true);
      else slow.delete(hostname);
      if (!isSlow) return;
      slowAsked--;
      inLine.shift()?.();
    };
    const ask = () => {
      const askedAt = now();
      if (isSlow) slowAsked++;
      try {
        lookUp(hostname, options, (...answer) => {
          end(askedAt);
          answerAll(key, ...answer);
        });
      } catch (error) {
        end(askedAt);
        answerAll(key, error as NodeJS.ErrnoException, ''); // it would never be answered
      }
    };
    if (isSlow && slowAsked >= mostSlow) inLine.push(ask);
    else ask();
  };
}

import type { LookupFunction } from 'node:net';

type Callback = Parameters<LookupFunction>[2];

/**
 * Asks for the addresses of a name once for all that want them at the same time. The operating system is asked on threads of which Node lets few wait
 * for names (libuv: half of UV_THREADPOOL_SIZE). A name whose servers do not answer keeps one for ten seconds or more, and its calls would keep
 * all of them: then no connection to any other name would come about.
 */
export function sharedLookup(lookUp: LookupFunction): LookupFunction {
  const waiting = new Map<string, Callback[]>();
  return (hostname, options, callback) => {
    const key = `${hostname} ${JSON.stringify(options)}`;
    const others = waiting.get(key);
    if (others) return void others.push(callback);
    const all = [callback];
    waiting.set(key, all);
    try {
      lookUp(hostname, options, (...answer) => {
        waiting.delete(key);
        for (const each of all) each(...answer);
      });
    } catch (error) {
      waiting.delete(key); // it would never be answered
      throw error;
    }
  };
}

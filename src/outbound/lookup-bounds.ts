/** How many names may be asked for at the same time. The others wait. */
export interface LookupBounds {
  /** One more would wait for a thread, where nobody knows that it waits. */
  all: number;
  /** While more are asked for, only of domains of which no other name is. */
  shared: number;
  /** Of those that were slow when they were asked for last. */
  slow: number;
  /** Of these, those of which nothing is known, and those whose domain was slow. */
  unproven: number;
  /**
   * The same of one domain, of which the same servers answer for all names, or for none; one that was quick itself need
   * not keep to it.
   */
  unprovenOfDomain: number;
  /** Of one domain in all. */
  ofDomain: number;
}

/**
 * Two threads are left for names that were quick, and two more for those of which nothing is known, where there are so
 * many: a domain that has fallen silent has two. The last two of all are only for domains of which no other name is
 * asked for: however many were quick and fall silent together, each gets one of these at most, and two domains leave
 * both. Of few threads the first to be had are those for another domain of which nothing is known: after a start that
 * is each.
 * @param threads of libuv, which lets half of them ask for names (`slow_work_thread_threshold` in its threadpool.c)
 */
export function lookupBoundsOf(threads: number): LookupBounds {
  const all = Math.floor((threads + 1) / 2);
  const shared = all - 2;
  const unproven = Math.max(Math.min(all, 2), all - 2);
  const unprovenOfDomain = Math.max(1, Math.min(2, Math.floor(unproven / 2)));
  return {
    all,
    shared,
    slow: Math.max(1, unproven - 2),
    unproven,
    unprovenOfDomain,
    // One more, where it leaves a thread, is for a name of the domain that was quick itself.
    ofDomain: Math.max(1, Math.min(shared, Math.max(unprovenOfDomain + 1, Math.floor(shared / 2)))),
  };
}

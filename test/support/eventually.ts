import { setTimeout as sleep } from 'node:timers/promises';

export interface Patience {
  /** Until then it has to be so. */
  withinMs?: number;
  /** Between two looks. */
  everyMs?: number;
}

/**
 * Waits until `look` gives something truthy and returns that. An assertion inside `look` that throws counts as "not yet"; when the
 * time is over, what it threw last is the cause.
 */
export async function eventually<T>(
  look: () => T | Promise<T>,
  what = 'the condition',
  { withinMs = 25_000, everyMs = 10 }: Patience = {},
): Promise<Exclude<T, false | null | undefined>> {
  const giveUpAt = Date.now() + withinMs;
  let last: unknown;
  for (;;) {
    try {
      const seen = await look();
      if (seen) return seen as Exclude<T, false | null | undefined>;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (Date.now() > giveUpAt) {
      const reason = last instanceof Error ? `: ${last.message}` : '';
      throw new Error(`Waited ${withinMs} ms in vain for ${what}${reason}`, { cause: last });
    }
    await sleep(everyMs);
  }
}

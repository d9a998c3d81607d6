import { setTimeout as sleep } from 'node:timers/promises';

/** Only a test that fails waits as long. A machine that is busy with something else must not make one fail. */
const patienceMs = 180_000;
/**
 * A look is often a call to a process, which costs both sides some milliseconds: the longer it takes, the rarer they
 * become.
 */
const [firstMs, slowerBy, mostMs] = [10, 1.25, 100];

/**
 * Waits until `look` gives something truthy and returns that. An assertion inside `look` that throws counts as "not
 * yet"; when the time is over, what it threw last is the cause.
 * @param options.everyMs the same pause between any two looks; left out, it grows from 10 to 100 ms
 */
export async function eventually<T>(
  look: () => T | Promise<T>,
  what = 'the condition',
  { everyMs }: { everyMs?: number } = {},
): Promise<Exclude<T, false | null | undefined>> {
  const giveUpAt = Date.now() + patienceMs;
  let last: unknown;
  let pauseMs = everyMs ?? firstMs;
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
      throw new Error(`Waited ${patienceMs / 1000} s in vain for ${what}${reason}`, { cause: last });
    }
    await sleep(pauseMs);
    pauseMs = everyMs ?? Math.min(pauseMs * slowerBy, mostMs);
  }
}

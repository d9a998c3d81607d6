import type { Clock } from '../infra/clock.js';
import type { Postgres } from '../infra/postgres/postgres.js';

/** Deliveries that one statement frees or ends. */
const batchSize = 1000;
/** Subscriptions that are read together. */
const subscriptionsTogether = 100;

/** Repeats a bounded statement while it finds as much as it may. @returns how many deliveries it found in all */
export async function inBatches(statement: (limit: number) => Promise<number>, stopping: AbortSignal): Promise<number> {
  let total = 0;
  for (;;) {
    const count = await statement(batchSize);
    total += count;
    if (count < batchSize || stopping.aborted) return total;
  }
}

/**
 * Held deliveries that have become too old may be a million, and due at the same moment. Retries of others are handed
 * out in the order in which they are due, and share the lane: they do not wait behind more than these, and have the
 * pause to themselves (docs/decisions/0026).
 */
export const endingPace = { together: 1000, pauseMs: 500 };
/** In a round of some ten seconds. A run of the dispatcher that is to end applies every rule once, one by one. */
const mostPaced = 20;

/** As `inBatches`, at that pace, and no more than a round may: the next one goes on. */
export async function inPacedBatches(
  statement: (limit: number) => Promise<number>,
  clock: Clock,
  stopping: AbortSignal,
): Promise<number> {
  let total = 0;
  for (let batches = 0; batches < mostPaced; batches++) {
    const count = await statement(endingPace.together);
    total += count;
    if (count < endingPace.together || stopping.aborted) break;
    await clock.pause(endingPace.pauseMs, stopping);
    if (stopping.aborted) break;
  }
  return total;
}

/**
 * Of so many subscriptions in a round: then it is Postgres that is in trouble, and each further one would wait for its
 * time limit.
 */
const mostFailures = 3;

/** Work that the ledger notes for subscriptions. */
export interface NotedWork<Noted> {
  /** The next subscriptions after that one, in the order of their ids; `after` null: the first ones. */
  read: (postgres: Postgres, limit: number, after: string | null) => Promise<Noted[]>;
  /** Frees or ends some of its deliveries. @returns how many */
  work: (postgres: Postgres, noted: Noted, limit: number) => Promise<number>;
  /** It freed or ended so many for the subscription, also where it then failed. */
  worked?: (noted: Noted, count: number) => void;
  /** All is done, as far as the ledger finds it so. */
  forget: (postgres: Postgres, noted: Noted) => Promise<void>;
}

/**
 * Does what is noted for each subscription, once, also where it fails for one or two of them. Once, because some may
 * stay noted: those of which another process has a delivery locked. A loop that went on until nothing is noted would
 * ask for them again and again meanwhile.
 * @returns how many deliveries it freed or ended
 * @throws the first error, after all
 */
export async function doNoted<Noted extends { subscriptionId: string }>(
  { read, work, worked, forget }: NotedWork<Noted>,
  postgres: Postgres,
  stopping: AbortSignal,
): Promise<number> {
  let total = 0;
  let after: string | null = null;
  const failures: unknown[] = [];
  const isOver = () => stopping.aborted || failures.length === mostFailures;
  for (;;) {
    const page: Noted[] = await read(postgres, subscriptionsTogether, after);
    for (const noted of page) {
      let count = 0;
      const someMore = async (limit: number): Promise<number> => {
        const some = await work(postgres, noted, limit);
        count += some;
        return some;
      };
      try {
        await inBatches(someMore, stopping);
        if (!stopping.aborted) await forget(postgres, noted);
      } catch (error) {
        failures.push(error);
      } finally {
        worked?.(noted, count);
      }
      total += count;
      if (isOver()) break;
    }
    if (page.length < subscriptionsTogether || isOver()) break;
    after = page.at(-1)!.subscriptionId;
  }
  if (failures.length > 0) throw failures[0];
  return total;
}

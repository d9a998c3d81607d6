import type { Redis } from 'ioredis';
import type { Share } from './refusal-counts.js';

/** A minute and the longest difference between two clocks that still makes sense. */
const keptMs = 120_000;

/** The counts of all processes, each under a key of Redis that ends by itself. */
export function sharedBy(redis: Redis): Share {
  return async (key, minute, count) => {
    const name = `refused:${minute}:${key}`;
    const answers = await redis.multi().incrby(name, count).pexpire(name, keptMs).exec();
    const [error, sum] = answers?.[0] ?? [new Error('The transaction was not carried out.')];
    if (error) throw error;
    return Number(sum);
  };
}

import { giveUpAfterMs, refusedMs } from './note-rows.js';

const [shortestMs, longestMs] = [15_000, 900_000];

/**
 * Milliseconds until a note that could not be sent is tried again: 15 s, twice as long each time, at most a quarter of
 * an hour; an hour where its recipient was refused for good. Null: it is given up.
 * @param attempts that were made
 * @param ageMs since the note was written
 */
export function retryDelayMs(attempts: number, ageMs: number, isRefused: boolean): number | null {
  const delayMs = isRefused ? refusedMs : Math.min(longestMs, shortestMs * 2 ** Math.min(attempts - 1, 20));
  return ageMs + delayMs > giveUpAfterMs ? null : delayMs;
}

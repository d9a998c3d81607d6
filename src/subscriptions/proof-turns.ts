import { CallerTurns } from '../infra/caller-turns.js';

/**
 * Turns of callers whose callbacks are called, so that receivers which say nothing do not keep those of others from
 * being proved. Each proof keeps a connection, for up to half a minute for each of its calls; nearly all take
 * milliseconds.
 * @param longestMs that a proof waits for its turn
 */
export const proofTurns = (longestMs: number): CallerTurns =>
  new CallerTurns({
    atOnce: 64,
    ofOne: 8,
    longestMs,
    busy: 'The callbacks of others are called first. Repeat this one later.',
  });

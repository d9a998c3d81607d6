const [firstMs, longestMs] = [250, 30_000];

/** A process that lived this long was not ended by its start: its next end counts as the first again. */
export const longLifeMs = 60_000;

/**
 * Milliseconds until a process is started again after its `endings`-th end in a row (from 1): doubles, at most 30 s.
 */
export function restartDelayMs(endings: number): number {
  return Math.min(longestMs, firstMs * 2 ** (endings - 1));
}

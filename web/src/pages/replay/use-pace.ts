import { useRef } from 'react';
import type { Replay } from '../../selection/selection.ts';

/**
 * The pace is that of the last seconds: a replay that was paused, or waits for an endpoint, has another one than
 * before.
 */
const windowMs = 12_000;

interface Sample {
  at: number;
  found: number;
}

/** Deliveries a second that the replay came to lately; undefined: it is not known yet. */
export function usePace(work: Replay | undefined, updatedAt: number): number | undefined {
  const samples = useRef<Sample[]>([]);
  if (!work) return undefined;
  const last = samples.current.at(-1);
  if (last?.at !== updatedAt) {
    const isReset = work.state !== 'running';
    samples.current = isReset
      ? []
      : [...samples.current.filter(({ at }) => at > updatedAt - windowMs), { at: updatedAt, found: work.found }];
  }
  return paceOf(samples.current);
}

function paceOf(samples: readonly Sample[]): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || !last || last.at - first.at < 1_500) return undefined;
  return ((last.found - first.found) / (last.at - first.at)) * 1000;
}

import { setTimeout as pause } from 'node:timers/promises';

/** Time, injected so that tests decide what time it is and how long a pause takes. */
export abstract class Clock {
  /** Milliseconds since 1970, UTC, with fractions; never less than before. */
  abstract now(): number;
  /** Resolves after that many milliseconds, or as soon as `signal` is aborted. */
  abstract pause(ms: number, signal?: AbortSignal): Promise<void>;
}

/**
 * The best of several comparisons: one that waits for a processor between its two readings says too little by that
 * wait, tens of milliseconds at a start on a busy machine. Notifications of this moment would then lie in the future.
 */
const startedAt = Math.max(...Array.from({ length: 10 }, () => Date.now() - performance.now()));

/**
 * The time of the system's clock when the process started, and the time that has passed since: a system's clock that is
 * set while the process runs is not followed.
 */
export const systemClock: Clock = {
  now: () => startedAt + performance.now(),
  pause: (ms, signal) => pause(ms, undefined, { signal }).catch(() => {}), // aborted: over before its time
};

import { setTimeout as pause } from 'node:timers/promises';

/** Time, injected so that tests decide what time it is and how long a pause takes. */
export abstract class Clock {
  /** Milliseconds since 1970, UTC. */
  abstract now(): number;
  /** Resolves after that many milliseconds, or as soon as `signal` is aborted. */
  abstract pause(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  pause: (ms, signal) => pause(ms, undefined, { signal }).catch(() => {}), // aborted: over before its time
};

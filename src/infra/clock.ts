/** Wall-clock time, injected so that tests decide what time it is. */
export abstract class Clock {
  /** Milliseconds since 1970, UTC. */
  abstract now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

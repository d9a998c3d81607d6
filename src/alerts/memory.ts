/** How many were due at a moment. */
export interface BacklogSample {
  /** Milliseconds since 1970, by Postgres' clock, as all here. */
  at: number;
  count: number;
  /** Since when the oldest of them has been due. */
  dueSince: number;
}

/** Rounds of one build: the first since it had none for long, and the last. */
export interface BuildSeen {
  since: number;
  at: number;
}

/** Data that one round hands on to the next, whichever process has that. Kept small: it is written in each round. */
export interface Memory {
  /** The oldest first; a dozen. */
  backlog?: BacklogSample[];
  /** Role → since when no process has it. */
  missingSince?: Partial<Record<string, number>>;
  /** The subscription up to which the last round looked for dead letters; undefined: it looked at the last one. */
  deadUpTo?: string | undefined;
  /** The same for failing ones. */
  failingUpTo?: string | undefined;
  /** The same for those whose calls are not made. */
  notMadeUpTo?: string | undefined;
  /** Since when there has been any such subscription. */
  notMadeSince?: number;
  /** The same by subscription, of as many as a round looks at. */
  notMadeFirst?: Partial<Record<string, number>>;
  /** When a round last saw those of `notMadeFirst` that have a rate. A version before does not say. */
  notMadeLast?: Partial<Record<string, number>>;
  /** Rule → when it was last said that it has as many open alerts as it may. */
  limitToldAt?: Partial<Record<string, number>>;
  /** To ask for the size reads the size of each file. */
  disk?: { at: number; bytes: number };
  /** By the fingerprint of what it knows; a few. */
  builds?: Partial<Record<string, BuildSeen>>;
}

const ofThisBuild: Record<keyof Memory, true> = {
  backlog: true,
  missingSince: true,
  deadUpTo: true,
  failingUpTo: true,
  notMadeUpTo: true,
  notMadeSince: true,
  notMadeFirst: true,
  notMadeLast: true,
  limitToldAt: true,
  disk: true,
  builds: true,
};
export const memoryNames: readonly string[] = Object.keys(ofThisBuild);

/** The data that only rounds of another build understand. */
export const memoryOfOthers = (memory: Memory): object =>
  Object.fromEntries(Object.entries(memory).filter(([name]) => !Object.hasOwn(ofThisBuild, name)));

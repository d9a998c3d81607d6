/** A call for the lock of a key. */
export interface LockRequest {
  key: string;
  /** Proves who holds the lock: unique per call, begins with the holding process and a slash. */
  token: string;
  ttlMs: number;
  requestHash: string | null;
  /** Whether a holder that is no longer alive loses the key at once, rather than when its TTL ends. */
  mayTakeOver: boolean;
}

/** The work was done; `outcome` is its result, as it was sealed. */
export interface Sealed {
  kind: 'sealed';
  outcome: unknown;
  requestHash: string | null;
}

/** A store's answer to a `LockRequest`. */
export type LockAnswer =
  /** The caller has the lock until its TTL ends. `takenOver`: from a holder that is no longer alive. */
  | { kind: 'acquired'; takenOver: boolean }
  /**
   * Another caller has the lock, in the process `holder`. Null: it is not known, or the value under the key cannot be
   * read.
   */
  | { kind: 'locked'; holder: string | null }
  | Sealed;

/** The process that has the lock with this token; null when it is no token of ours. */
export const holderOf = (token: string): string | null => /^([\w-]{1,64})\//.exec(token)?.[1] ?? null;

/**
 * Of the calls of a store. More than deliveries in a worker's hand at the most; a seal that is refused after that
 * leaves its lock to the TTL.
 */
export const keysBounds = { maxWaiting: { items: 20_000 }, turnWithinMs: 30_000 };

/**
 * Keeps locks and seals. Every call is atomic, and those that change a lock check the token: a holder that comes too
 * late changes nothing and gets `false`. A store that cannot be reached rejects.
 */
export abstract class IdempotencyStore {
  /** From now on this process counts as alive; before, its locks could be taken over. */
  abstract announce(): Promise<void>;
  /** Other processes may take over the locks of this process at once. */
  abstract withdraw(): Promise<void>;
  /** Likewise of another process, which has ended. */
  abstract forget(process: string): Promise<void>;

  /** A second call with the same token gets the same lock again: the first answer may have been lost. */
  abstract acquire(request: LockRequest): Promise<LockAnswer>;
  abstract extend(key: string, token: string, ttlMs: number): Promise<boolean>;
  abstract seal(key: string, token: string, outcome: unknown, keepMs: number): Promise<boolean>;
  abstract release(key: string, token: string): Promise<boolean>;
  /**
   * Removes keys that have expired since then, up to `limit`, where the store does not do so by itself.
   * @param sinceMs milliseconds since 1970, by Postgres' clock
   * @returns how many
   */
  abstract sweep(sinceMs: number, limit: number): Promise<number>;
}

/** What a store says of a key when somebody wants it. */
export type Acquired =
  /** It is the caller's now, until its TTL ends. `takenOver`: from an owner that is no longer alive. */
  | { kind: 'acquired'; takenOver: boolean }
  /** Somebody is at it, or what stands under the key cannot be read. */
  | { kind: 'locked' }
  /** It was done; `outcome` is what came of it, as it was sealed. */
  | { kind: 'sealed'; outcome: unknown; requestHash: string | null };

export interface Claim {
  key: string;
  /** Proves ownership: unique per call, begins with the owning process and a slash. */
  token: string;
  ttlMs: number;
  requestHash: string | null;
  /** Whether an owner that is no longer alive loses the key at once, rather than when its TTL ends. */
  mayTakeOver: boolean;
}

/**
 * Where locks and seals are kept. Every call is atomic, and those that end a lock check the token: an owner that comes too
 * late changes nothing and is told so with `false`. A store that cannot be reached rejects; it never guesses.
 */
export abstract class IdempotencyStore {
  /** From now on this process counts as alive; before, its locks could be taken over. */
  abstract live(): Promise<void>;
  /** Others may take over at once what this process still holds. */
  abstract leave(): Promise<void>;

  /** Who has the key already, and did not hear so, has it. */
  abstract acquire(claim: Claim): Promise<Acquired>;
  abstract extend(key: string, token: string, ttlMs: number): Promise<boolean>;
  abstract seal(key: string, token: string, outcome: unknown, keepMs: number): Promise<boolean>;
  abstract release(key: string, token: string): Promise<boolean>;
  /** Forgets what expired, where the store does not do so by itself. */
  abstract sweep(): Promise<void>;
}

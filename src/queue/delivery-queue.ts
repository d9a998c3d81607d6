import type { Chunk } from './chunk.js';

/** `due`: first attempts. `slow`: repeated and held deliveries, kept apart so that they never stand in front of the first. */
export const lanes = ['due', 'slow'] as const;
export type Lane = (typeof lanes)[number];

/**
 * `taken`: the queue has it and keeps it until a consumer is done with it. `refused`: full, blocked, or the connection
 * went; it may or may not have it, so the ledger must hand the deliveries out again.
 */
export type PublishOutcome = 'taken' | 'refused';

export interface Taken {
  chunk: Chunk;
  lane: Lane;
  /** True when somebody may have had it before and not finished. */
  isRedelivered: boolean;
}

/** Resolves when the queue may forget the chunk. Must not reject but for a bug; the chunk then comes back. */
export type Take = (taken: Taken) => Promise<void>;

export interface Consumption {
  /** Takes no more; resolves when every chunk taken is done with, and the queue knows it. */
  stop(): Promise<void>;
}

/** Moves work that is due now, and only that. Nothing here is the truth: everything in it can be lost without loss. */
export abstract class DeliveryQueue {
  /** Process whose end empties the queue; null where a broker keeps it. */
  abstract readonly owner: string | null;

  /** Resolves after the first try to connect: starting does not wait for a broker that is down. */
  open(): Promise<void> {
    return Promise.resolve();
  }

  /** What keeps it from working; undefined when nothing does. */
  get trouble(): unknown {
    return undefined;
  }

  /** False while publishing would be refused: no connection, blocked, full. Callers then leave the work in the ledger. */
  abstract readonly isAccepting: boolean;

  /** Never waits for room and never throws. */
  abstract publish(lane: Lane, chunk: Chunk): Promise<PublishOutcome>;

  /** Calls `take` for each chunk, at most `prefetch` at a time. Survives every interruption of the queue. */
  abstract consume(lane: Lane, prefetch: number, take: Take): Promise<Consumption>;

  /** Chunks nobody has taken yet. @throws when the queue cannot be asked */
  abstract depth(lane: Lane): Promise<number>;

  /** Calls back whenever the queue had to be created anew and therefore holds nothing. */
  abstract onCreated(listener: () => void): void;

  /** Lets what is under way be confirmed, then closes. */
  abstract close(): Promise<void>;
}

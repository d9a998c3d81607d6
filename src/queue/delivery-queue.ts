import type { Delivery } from '../ledger/delivery.js';
import type { Chunk } from './chunk.js';

/**
 * `fresh`: first attempts of what has just been accepted. `due`: first attempts that waited in the ledger, for their
 * time or because the queue was full. `slow`: repeated and released deliveries. Kept apart, so that none waits behind a
 * backlog of the next: a hundred thousand may be due at the same moment.
 */
export const lanes = ['fresh', 'due', 'slow'] as const;
export type Lane = (typeof lanes)[number];

export const perLane = <T>(make: (lane: Lane) => T): Record<Lane, T> => ({
  fresh: make('fresh'),
  due: make('due'),
  slow: make('slow'),
});

/** Of what waited in the ledger. */
export const laneOf = ({ failures, isReleased }: Delivery): Lane => (failures > 0 || isReleased ? 'slow' : 'due');

/** By which it came to a worker, or would have come if it had not been handed over. */
export const laneTaken = (delivery: Delivery): Lane => (delivery.generation === 1 ? 'fresh' : laneOf(delivery));

/**
 * `confirmed`: the queue has the chunk and keeps it until a consumer is done with it. `refused`: full, blocked, silent,
 * or the connection was lost; the queue may or may not have it, so the ledger must hand the deliveries out again.
 */
export type PublishOutcome = 'confirmed' | 'refused';

export interface Taken {
  chunk: Chunk;
  lane: Lane;
  /** True when a consumer may have taken it before and not finished. */
  isRedelivered: boolean;
}

/** Resolves when the queue may forget the chunk. Must not reject but for a bug; the chunk then comes back. */
export type Take = (taken: Taken) => Promise<void>;

export interface Consumption {
  /** Takes no more; resolves when every chunk taken is done with, and the queue knows it. */
  stop(): Promise<void>;
  /**
   * Takes no more, and leaves every chunk that is not done with to other consumers, at once; it does not matter any
   * more how `take` ends. Resolves when the queue has been told; a quorum queue puts them back a moment later.
   */
  giveBack(): Promise<void>;
}

/**
 * Moves deliveries that are due now to the workers. Its content may be lost at any time: the ledger hands it out again.
 */
export abstract class DeliveryQueue {
  /** The process whose memory the queue is, and whose end empties it; null where a broker keeps it. */
  abstract readonly process: string | null;

  /** Resolves after the first try to connect: starting does not wait for a broker that is down. */
  open(): Promise<void> {
    return Promise.resolve();
  }

  /** Why the queue does not work; undefined when it works. */
  get trouble(): unknown {
    return undefined;
  }

  /** Those of which a broker has refused chunks of late, because their queues hold as many as they may. */
  get fullLanes(): readonly Lane[] {
    return [];
  }

  /** The error with which a broker that takes others has refused a message of late; undefined: it has refused none. */
  get refusal(): unknown {
    return undefined;
  }

  /** Of the broker; undefined where there is none, or no connection to it. */
  get brokerVersion(): string | undefined {
    return undefined;
  }

  /**
   * False while publishing would be refused: no connection, blocked, full. Callers then leave the deliveries in the
   * ledger.
   */
  abstract readonly isAccepting: boolean;

  /** The same, of deliveries of one lane alone. */
  accepts(_lane: Lane): boolean {
    return this.isAccepting;
  }

  /** It has confirmed nothing for long, and is only tried now and then; it says so itself. */
  isSilent(_lane: Lane): boolean {
    return false;
  }

  /** Never waits for room and never throws. */
  abstract publish(lane: Lane, chunk: Chunk): Promise<PublishOutcome>;

  /** Calls `take` for each chunk, at most `prefetch` at a time. Survives every interruption of the queue. */
  abstract consume(lane: Lane, prefetch: number, take: Take): Promise<Consumption>;

  /**
   * Chunks that no consumer has taken yet.
   * @throws QueueNotReached where it is not known although the queue answers; otherwise when it cannot be asked
   */
  abstract depth(lane: Lane): Promise<number>;

  /** Calls back whenever the queue had to be created anew and therefore holds nothing. */
  abstract onCreated(listener: () => void): void;

  /** Waits for outstanding confirms, but not for long, then closes. */
  abstract close(): Promise<void>;
}

import type { Destination } from '../ledger/acceptance.js';
import type { HandedOut } from '../ledger/delivery.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import type { BacklogPace } from './backlog-pace.service.js';
import type { Chunk } from './chunk.js';
import type { Consumption } from './delivery-queue.js';
import { refusedDelayMs, type Enqueuer } from './enqueuer.service.js';

/**
 * Of what is handed over, until its worker has taken the lease of all that is in hand. A delivery that was committed and could
 * not be handed over, because the ledger's answer was lost, is found when this ends.
 */
const leaseMs = 15_000;

export interface HandOverLimits {
  /** Deliveries of one notification: those of one that has more go to other workers too, by the queue. */
  together: number;
  /**
   * Deliveries that the worker may have in memory, from the lane `fresh` and from here: as many as it takes from the queue before their
   * turn. Texts of up to 8 KB come with them.
   */
  inMemory: number;
}

/** The way of deliveries that are about to be accepted. It is gone, or given up. */
export interface Way {
  /** For the accepting statement. */
  destination: Destination;
  /** They are committed. Never throws; a publisher's answer does not wait for what follows. */
  go(deliveries: HandedOut[], catalogueVersion: number, queuedAt: number): void;
  /** They were not committed, or it is not known. Does nothing after `go`. */
  giveUp(): void;
}

type TakeHandedOver = (chunk: Chunk) => Promise<void>;

/**
 * Decides how accepted deliveries get to a worker: handed over to that of this process while it has room for them, otherwise by the
 * queue, and while that would refuse them by the dispatcher (docs/decisions/0030).
 */
export class HandOver {
  private take: TakeHandedOver | undefined;
  private inMemory = 0;
  private readonly underWay = new Set<Promise<void>>();

  constructor(
    private readonly enqueuer: Enqueuer,
    private readonly heartbeat: Heartbeat,
    private readonly pace: BacklogPace,
    private readonly limits: HandOverLimits,
  ) {}

  /** Of the worker of this process: it takes what is handed over, until this is stopped. `take` must not reject. */
  consume(take: TakeHandedOver): Consumption {
    this.take = take;
    return {
      stop: async () => {
        this.take = undefined;
        await Promise.all(this.underWay);
      },
    };
  }

  /** The worker has so many deliveries in memory, until what is returned is called. */
  occupy(count: number): () => void {
    this.pace.fresh();
    this.inMemory += count;
    return () => (this.inMemory -= count);
  }

  /** @param counts how many deliveries each notification has, at most; they go all the same way */
  wayFor(counts: readonly number[]): Way {
    const count = counts.reduce((sum, each) => sum + each, 0);
    const { together, inMemory } = this.limits;
    const isForOne = count > 0 && this.inMemory + count <= inMemory && counts.every((each) => each <= together);
    if (this.take && isForOne) return this.straight(count);
    const { isAccepting, process } = this.enqueuer;
    return {
      destination: isAccepting ? { state: 'queued', process } : { state: 'waiting', delayMs: refusedDelayMs },
      go: (...chunk) => void this.enqueuer.enqueue('fresh', ...chunk),
      giveUp: () => {},
    };
  }

  private straight(count: number): Way {
    let leave: (() => void) | undefined = this.occupy(count);
    const giveUp = () => {
      leave?.();
      leave = undefined;
    };
    return {
      destination: { state: 'in-hand', process: this.heartbeat.processId, leaseMs },
      go: (deliveries, catalogueVersion, queuedAt) => {
        giveUp();
        this.hand({ deliveries, catalogueVersion, queuedAt });
      },
      giveUp,
    };
  }

  private hand(chunk: Chunk): void {
    // The worker has stopped meanwhile.
    if (!this.take) return void this.enqueuer.putBack(chunk.deliveries);
    const leave = this.occupy(chunk.deliveries.length);
    const taken = this.take(chunk).finally(() => {
      leave();
      this.underWay.delete(taken);
    });
    this.underWay.add(taken);
  }
}

import type { Accepted, Destination } from '../ledger/acceptance.js';
import { longestInlineBody, type HandedOut } from '../ledger/delivery.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import type { BacklogPace } from './backlog-pace.service.js';
import { bytesOf, deliveryBytes, type Chunk } from './chunk.js';
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
  /** What the worker may have in memory, from the lane `fresh` and from here. */
  inMemory: () => Memory;
}

/** With the texts, about; those of more than 8 KB are not in memory. */
export interface Memory {
  deliveries: number;
  bytes: number;
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
  private readonly inMemory: Memory = { deliveries: 0, bytes: 0 };
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

  /** The worker has its deliveries in memory, until what is returned is called. */
  occupy(chunk: Chunk): () => void {
    return this.occupyWith({ deliveries: chunk.deliveries.length, bytes: bytesOf(chunk) });
  }

  /** @param accepted all that they may have been matched with; their deliveries go all the same way */
  wayFor(accepted: readonly Pick<Accepted, 'subscriptionIds' | 'body'>[]): Way {
    const { together, inMemory } = this.limits;
    const added = memoryFor(accepted);
    const most = inMemory();
    const hasRoom =
      this.inMemory.deliveries + added.deliveries <= most.deliveries && this.inMemory.bytes + added.bytes <= most.bytes;
    const isForOne =
      added.deliveries > 0 && accepted.every(({ subscriptionIds }) => subscriptionIds.length <= together);
    if (this.take && isForOne && hasRoom) return this.straight(added);
    const { isAccepting, process } = this.enqueuer;
    return {
      destination: isAccepting ? { state: 'queued', process } : { state: 'waiting', delayMs: refusedDelayMs },
      go: (...chunk) => void this.enqueuer.enqueue('fresh', ...chunk),
      giveUp: () => {},
    };
  }

  private occupyWith({ deliveries, bytes }: Memory): () => void {
    this.pace.fresh();
    this.inMemory.deliveries += deliveries;
    this.inMemory.bytes += bytes;
    return () => {
      this.inMemory.deliveries -= deliveries;
      this.inMemory.bytes -= bytes;
    };
  }

  private straight(added: Memory): Way {
    let leave: (() => void) | undefined = this.occupyWith(added);
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
    const leave = this.occupy(chunk);
    const taken = this.take(chunk).finally(() => {
      leave();
      this.underWay.delete(taken);
    });
    this.underWay.add(taken);
  }
}

function memoryFor(accepted: readonly Pick<Accepted, 'subscriptionIds' | 'body'>[]): Memory {
  const memory = { deliveries: 0, bytes: 0 };
  for (const { subscriptionIds, body } of accepted) {
    if (subscriptionIds.length === 0) continue;
    const bodyBytes = Buffer.byteLength(body);
    memory.deliveries += subscriptionIds.length;
    memory.bytes += subscriptionIds.length * deliveryBytes + (bodyBytes > longestInlineBody ? 0 : bodyBytes);
  }
  return memory;
}

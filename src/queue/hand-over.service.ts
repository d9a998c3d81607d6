import { Logger } from '@nestjs/common';
import type { Accepted, Destination } from '../ledger/acceptance.js';
import { longestInlineBody, type HandedOut } from '../ledger/delivery.js';
import type { Heartbeat } from '../liveness/heartbeat.service.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { Capacity, Siblings } from '../supervision/siblings.js';
import type { BacklogPace } from './backlog-pace.service.js';
import { bytesOf, cutIntoChunks, deliveryBytes, type Chunk } from './chunk.js';
import { decodeChunk, encodeChunk } from './chunk-format.js';
import type { Consumption } from './delivery-queue.js';
import { refusedDelayMs, type Enqueuer } from './enqueuer.service.js';
import type { Memory } from './most-in-memory.js';
import { takenFromSiblings } from './queue.counters.js';
import { SiblingCapacity } from './sibling-capacity.js';

/**
 * Milliseconds. Of what is handed over, from its acceptance on, until its worker has taken the lease of all that is in
 * hand. A delivery that was committed and could not be handed over, because the ledger's answer was lost, is found when
 * this ends.
 */
export const handOverLeaseMs = 15_000;
/** Deliveries that a sibling accepted longer ago go back to the ledger: too little of their lease is left. */
const lateAfterMs = 5000;

export interface HandOverLimits {
  /** Deliveries of one notification: those of one that has more go to other workers too, by the queue. */
  together: number;
  /** The most that the worker may have in memory, from the lane `fresh` and from here. */
  inMemory: () => Memory;
  /** Deliveries in memory from which on a process looks for capacity at its siblings. */
  sharedFrom: number;
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
 * Decides how accepted deliveries get to a worker: handed over to that of this process while it has capacity for them,
 * or to that of a sibling that has less to send (docs/decisions/0067), otherwise by the queue, and while that would
 * refuse them by the dispatcher (docs/decisions/0030).
 */
export class HandOver {
  private readonly logger = new Logger(HandOver.name);
  private take: TakeHandedOver | undefined;
  private readonly inMemory: Memory = { deliveries: 0, bytes: 0 };
  private readonly underWay = new Set<Promise<void>>();
  private readonly siblingCapacity: SiblingCapacity;

  constructor(
    private readonly enqueuer: Enqueuer,
    private readonly heartbeat: Heartbeat,
    private readonly ledgerClock: LedgerClock,
    private readonly pace: BacklogPace,
    private readonly siblings: Siblings,
    private readonly limits: HandOverLimits,
    now: () => number,
  ) {
    this.siblingCapacity = new SiblingCapacity(siblings, limits.sharedFrom, now);
  }

  /** Of the worker of this process: it takes what is handed over, until this is stopped. `take` must not reject. */
  consume(take: TakeHandedOver): Pick<Consumption, 'stop'> {
    this.take = take;
    this.siblings.listen({
      capacityFor: (sibling, deliveries) => this.capacityFor(sibling, deliveries),
      answered: (question, sibling, capacity) => this.siblingCapacity.answered(question, sibling, capacity),
      handedOver: (message) => this.takeFromSibling(message),
    });
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
    const { together } = this.limits;
    const added = memoryFor(accepted);
    const isForOne =
      added.deliveries > 0 && accepted.every(({ subscriptionIds }) => subscriptionIds.length <= together);
    if (this.take && isForOne) {
      const found = this.siblingCapacity.use(added, this.inMemory);
      if (found) return this.toSibling(found);
      if (this.hasRoomFor(added)) return this.straight(added);
    }
    const { process } = this.enqueuer;
    return {
      destination: this.enqueuer.accepts('fresh')
        ? { state: 'queued', process }
        : { state: 'waiting', delayMs: refusedDelayMs },
      go: (...chunk) => void this.enqueuer.enqueue('fresh', ...chunk),
      giveUp: () => {},
    };
  }

  private hasRoomFor({ deliveries, bytes }: Memory): boolean {
    const most = this.limits.inMemory();
    return this.inMemory.deliveries + deliveries <= most.deliveries && this.inMemory.bytes + bytes <= most.bytes;
  }

  /** None while others may take this process for dead: they would send what is written as in its hand. */
  private capacityFor(sibling: number, deliveries: number): Capacity | undefined {
    if (!this.take || !this.heartbeat.isSteady) return undefined;
    const capacity = this.siblingCapacity.promise(sibling, deliveries, this.inMemory, this.limits.inMemory());
    return capacity && { ...capacity, process: this.heartbeat.processId };
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
    let freeMemory: (() => void) | undefined = this.occupyWith(added);
    const giveUp = () => {
      freeMemory?.();
      freeMemory = undefined;
    };
    return {
      destination: { state: 'in-hand', process: this.heartbeat.processId, leaseMs: handOverLeaseMs },
      go: (deliveries, catalogueVersion, queuedAt) => {
        giveUp();
        this.hand({ deliveries, catalogueVersion, queuedAt });
      },
      giveUp,
    };
  }

  /**
   * The sibling treats them as accepted by itself. If they do not arrive, they are freed when their lease has ended, or
   * that process is dead.
   */
  private toSibling({ sibling, process }: { sibling: number; process: string }): Way {
    return {
      destination: { state: 'in-hand', process, leaseMs: handOverLeaseMs },
      go: (deliveries, catalogueVersion, queuedAt) => {
        for (const chunk of cutIntoChunks(deliveries, catalogueVersion, queuedAt))
          this.siblings.handOver(sibling, encodeChunk(chunk));
      },
      giveUp: () => {},
    };
  }

  private takeFromSibling(message: Buffer): void {
    const chunk = this.read(message);
    if (!chunk) return;
    const { length } = chunk.deliveries;
    const isLate = this.ledgerClock.now() - chunk.queuedAt > lateAfterMs;
    if (!this.take || isLate || !this.hasRoomFor({ deliveries: length, bytes: bytesOf(chunk) })) {
      void this.enqueuer.putBack(chunk.deliveries);
      return;
    }
    takenFromSiblings.inc(length);
    this.hand(chunk);
  }

  /**
   * Undefined: it is of a sibling of another version, while the program is being replaced. The lease of its deliveries
   * ends soon.
   */
  private read(message: Buffer): Chunk | undefined {
    try {
      return decodeChunk(message);
    } catch (error) {
      this.logger.error({ event: 'queue.chunk-unreadable', lane: 'handed-over', error });
      return undefined;
    }
  }

  private hand(chunk: Chunk): void {
    // The worker has stopped meanwhile.
    if (!this.take) return void this.enqueuer.putBack(chunk.deliveries);
    const freeMemory = this.occupy(chunk);
    const taken = this.take(chunk).finally(() => {
      freeMemory();
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

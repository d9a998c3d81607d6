import { Injectable, Logger } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { Enqueuer } from '../enqueueing/enqueuer.service.js';
import { Heartbeat } from '../infra/postgres/heartbeat.service.js';
import { Leases } from '../ledger/leases.service.js';
import { DeliveryQueue, lanes } from '../queue/delivery-queue.js';

const claimTogether = 512;
/** With an empty queue, what was handed out longer ago than this is not on its way any more. */
const emptyQueueSlackMs = 5000;
/** From when something is handed out to when the queue has it, at most; after that somebody died before he published it. */
const publishingSlackMs = 5000;
/** Workers report how far they are every second. */
const reportedWithinMs = 1500;

/**
 * The one idempotent job: finds what is due, and what was lost, and hands it to the queue. Any number of processes may run
 * it, as often as they like: every row is claimed by one of them (`FOR UPDATE SKIP LOCKED`) under a new generation.
 */
@Injectable()
export class Dispatcher {
  private readonly logger = new Logger(Dispatcher.name);

  /** Whatever was handed out before it has been looked after, should somebody have died before he published it. */
  private clearedUpTo = 0;
  /** Nobody knows who died before the first look. */
  private beganAt: number | undefined;

  constructor(
    private readonly leases: Leases,
    private readonly queue: DeliveryQueue,
    private readonly enqueuer: Enqueuer,
    private readonly heartbeat: Heartbeat,
  ) {}

  /**
   * Hands out everything that is due, as far as the queue takes it.
   * @param onProgress told after every batch how many were handed out so far
   * @returns how many were handed out
   */
  async dispatchDue(onProgress?: (dispatched: number) => void): Promise<number> {
    let dispatched = 0;
    // A full or absent queue leaves the work where it is safe.
    while (this.enqueuer.isAccepting) {
      const claimed = await this.leases.claimDue(claimTogether, this.enqueuer.owner);
      const { deliveries, catalogueVersion, queuedAt } = claimed;
      if (deliveries.length === 0) break;
      const refused = await Promise.all(
        lanes.map((lane) => {
          const isSlow = lane === 'slow';
          const ofLane = deliveries.filter((delivery) => delivery.isSlow === isSlow);
          return this.enqueuer.enqueue(lane, ofLane, catalogueVersion, queuedAt);
        }),
      );
      dispatched += deliveries.length;
      onProgress?.(dispatched);
      if (refused.some((count) => count > 0)) break;
    }
    return dispatched;
  }

  /** Makes due again what nobody has in hand any more. @returns how many deliveries the queue had lost */
  async recover(): Promise<number> {
    await this.leases.freeOrphaned();
    for (const key of await this.leases.endSending()) this.logger.warn({ event: 'delivery.unknown', ...key });
    const suspectUpTo = await this.suspectUpTo();
    const leasesEnded = await this.leases.hasEndedLease();
    if (!leasesEnded && suspectUpTo === undefined) return 0;
    const doneUpTo = await this.doneUpTo();
    let lost = 0;
    const publishedUpTo = doneUpTo - publishingSlackMs;
    if (suspectUpTo !== undefined && publishedUpTo >= suspectUpTo) {
      lost += await this.leases.freeQueued(publishedUpTo);
      this.clearedUpTo = publishedUpTo;
    }
    if (leasesEnded) lost += await this.endLeases(doneUpTo);
    return lost;
  }

  /**
   * A process that died may have committed what it did not publish. Once the workers are past this moment, whatever was handed
   * to the queue before it, and is still queued, never got there. Of several, the first: the others' turn comes.
   * @returns undefined as long as the workers cannot be past any
   */
  private async suspectUpTo(): Promise<number | undefined> {
    this.beganAt ??= this.heartbeat.ledgerNow();
    const diedAt = (await this.leases.deathAfter(this.clearedUpTo)) ?? Infinity;
    const earliest = Math.min(diedAt, this.beganAt > this.clearedUpTo ? this.beganAt : Infinity);
    return earliest + publishingSlackMs <= this.heartbeat.ledgerNow() ? earliest : undefined;
  }

  private async endLeases(doneUpTo: number): Promise<number> {
    let lostInAll = 0;
    for (;;) {
      const { ended, lost } = await this.leases.endLeases(doneUpTo, claimTogether);
      lostInAll += lost;
      if (ended < claimTogether) return lostInAll;
    }
  }

  /**
   * The time up to which the workers are done with everything that was handed to the queue, on all lanes. Two looks, with a
   * report of every worker in between: what one took since its last report, neither the queue nor the ledger tells.
   */
  private async doneUpTo(): Promise<number> {
    const first = await this.seemsDoneUpTo();
    await pause(reportedWithinMs);
    return Math.min(first, await this.seemsDoneUpTo());
  }

  /**
   * The queues are first in, first out: what was handed out later may still stand in line, or be in somebody's hand; what was
   * handed out before and is not over was lost.
   */
  private async seemsDoneUpTo(): Promise<number> {
    const progress = await this.leases.readProgress();
    const emptyUpTo = this.heartbeat.ledgerNow() - emptyQueueSlackMs;
    const upTo = await Promise.all(
      lanes.map(async (lane) => {
        const { newestTaken = 0, oldestInHand = null } = progress.find((report) => report.lane === lane) ?? {};
        const takenUpTo = (await this.queue.depth(lane)) === 0 ? Math.max(emptyUpTo, newestTaken) : newestTaken;
        return Math.min(takenUpTo, oldestInHand === null ? Infinity : oldestInHand - 1);
      }),
    );
    return Math.min(...upTo);
  }
}

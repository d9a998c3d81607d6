import { Injectable, Logger } from '@nestjs/common';
import { Enqueuer } from '../enqueueing/enqueuer.service.js';
import { Heartbeat } from '../infra/postgres/heartbeat.service.js';
import { Leases } from '../ledger/leases.service.js';
import { DeliveryQueue, lanes } from '../queue/delivery-queue.js';

const claimTogether = 512;
/** With an empty queue, what was handed out longer ago than this is not on its way any more. */
const emptyQueueSlackMs = 5000;
/** From when something is handed out to when the queue has it, at most; after that somebody died before he published it. */
const publishingSlackMs = 5000;

/**
 * The one idempotent job: finds what is due, and what was lost, and hands it to the queue. Any number of processes may run
 * it, as often as they like: every row is claimed by one of them (`FOR UPDATE SKIP LOCKED`) under a new generation.
 */
@Injectable()
export class Dispatcher {
  private readonly logger = new Logger(Dispatcher.name);

  /** Undefined at the start: nobody knows who died before. */
  private lastDeathAt: number | undefined;
  /**
   * A process died, and may not have published what it had committed: once the workers are past this moment, whatever was
   * handed to the queue before it, and is still queued, never got there.
   */
  private suspectUpTo: number | undefined;

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
      const { deliveries, expired, catalogueVersion, queuedAt } = claimed;
      if (expired > 0) this.logger.log({ event: 'delivery.expired', deliveries: expired });
      if (deliveries.length + expired === 0) break;
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
    if ((await this.leases.buryDead()) || this.lastDeathAt === undefined) {
      this.lastDeathAt = this.heartbeat.ledgerNow();
      this.suspectUpTo ??= this.lastDeathAt;
    }
    const leasesEnded = await this.leases.hasEndedLease();
    if (!leasesEnded && this.suspectUpTo === undefined) return 0;
    const doneUpTo = await this.doneUpTo();
    const neverPublished = await this.freeNeverPublished(doneUpTo);
    return neverPublished + (leasesEnded ? await this.endLeases(doneUpTo) : 0);
  }

  private async freeNeverPublished(doneUpTo: number): Promise<number> {
    const upTo = this.suspectUpTo;
    if (upTo === undefined || doneUpTo < upTo + publishingSlackMs) return 0;
    const freed = await this.leases.freeQueued(upTo);
    this.suspectUpTo = this.lastDeathAt === upTo ? undefined : this.lastDeathAt; // who died since is next
    return freed;
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
   * The time up to which the workers are done with everything that was handed to the queue, on all lanes. The queues are
   * first in, first out: what was handed out later may still stand in line, or be in somebody's hand; what was handed out
   * before and is not over was lost.
   */
  private async doneUpTo(): Promise<number> {
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

import { Injectable } from '@nestjs/common';
import { Clock } from '../infra/clock.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { DeliveryQueue, lanes, type Lane } from './delivery-queue.js';
import { readProgress, type LaneReport } from './progress-reports.js';
import { QueueNotReached } from './queue-not-reached.js';

/** A chunk that was handed out longer ago than this, and is not in an empty queue, is not on its way there any more. */
const emptyQueueSlackMs = 5000;
/** Workers report how far they are every second. */
const reportedWithinMs = 1500;

/** Computes how far the workers are with the chunks that were handed to the queue (docs/decisions/0016). */
@Injectable()
export class QueuePosition {
  constructor(
    private readonly queue: DeliveryQueue,
    private readonly postgres: Postgres,
    private readonly ledgerClock: LedgerClock,
    private readonly clock: Clock,
  ) {}

  /**
   * The time up to which the workers are done with everything that was handed to the queue, on all lanes. Reads twice,
   * with a report of every worker in between: a chunk taken since a worker's last report is neither in the queue nor in
   * a report.
   * @returns milliseconds since 1970, by Postgres' clock
   * @throws when the queue cannot be asked
   */
  async findDoneUpTo(): Promise<number> {
    const first = await this.seemsDoneUpTo();
    await this.clock.pause(reportedWithinMs);
    return Math.min(first, await this.seemsDoneUpTo());
  }

  private async seemsDoneUpTo(): Promise<number> {
    const reports = await readProgress(this.postgres);
    const depths = await Promise.all(lanes.map(async (lane) => [lane, await this.depthOf(lane)] as const));
    return positionOf(reports, new Map(depths), this.ledgerClock.now());
  }

  /** Infinite: much may be in it. The workers are past what they have taken; that alone is known. */
  private async depthOf(lane: Lane): Promise<number> {
    try {
      return await this.queue.depth(lane);
    } catch (error) {
      if (error instanceof QueueNotReached) return Infinity;
      throw error;
    }
  }
}

/**
 * The queues are first in, first out: a chunk handed out after the newest one taken may still be in the backlog, and
 * one handed out after the oldest unacknowledged one may be unacknowledged too. Every chunk before both is done, or was
 * lost.
 */
export function positionOf(reports: LaneReport[], depths: ReadonlyMap<Lane, number>, nowMs: number): number {
  const positions = lanes.map((lane) => {
    const { newestTaken = 0, oldestUnacknowledged = null } = reports.find((report) => report.lane === lane) ?? {};
    const takenUpTo = depths.get(lane) === 0 ? Math.max(nowMs - emptyQueueSlackMs, newestTaken) : newestTaken;
    return Math.min(takenUpTo, oldestUnacknowledged === null ? Infinity : oldestUnacknowledged - 1);
  });
  return Math.min(...positions);
}

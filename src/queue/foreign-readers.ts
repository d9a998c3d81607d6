import { Logger } from '@nestjs/common';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import { perLane, type Lane } from './delivery-queue.js';

/**
 * Longer than a worker has consumers whose machine is gone: RabbitMQ takes two to three heartbeats of ten seconds to
 * find out, although longer where an operator asks for more than a hundred, or for none; and than a worker reads on
 * that has lost Postgres.
 */
const foreignAfterMs = 300_000;
/**
 * Looks come every ten seconds. After a longer gap Postgres or RabbitMQ was away: workers that were started anew are
 * counted before those that they replace are forgotten.
 */
const longestGapMs = 30_000;

class ReadByOthers extends Error {
  constructor(queue: string, readers: number, workers: number) {
    super(
      `${queue} has ${readers} readers, more than this installation has workers (${workers}), each of which is one: does another installation use this virtual host with the same QUEUE_PREFIX?`,
    );
  }
}

/**
 * Finds another installation that reads the same queues: a second one with the default prefix, or a copy of this one.
 * Each takes what the other has handed out, and the copy sends it as well.
 */
export class ForeignReaders {
  private readonly since = new Map<Lane, number>();
  private readonly lookedAt = new Map<Lane, number>();
  private readonly lines: Record<Lane, RepeatedFailures>;

  /** @param now milliseconds, of a clock that runs steadily */
  constructor(
    logger: Pick<Logger, 'debug' | 'log' | 'warn'>,
    private readonly now: () => number,
  ) {
    this.lines = perLane(() => new RepeatedFailures(logger, { failed: { event: 'queue.read-by-others' } }, now));
  }

  /** @param workers of this installation that are alive */
  note(lane: Lane, queue: string, readers: number, workers: number): void {
    const now = this.now();
    if (now - (this.lookedAt.get(lane) ?? now) > longestGapMs) this.since.delete(lane);
    this.lookedAt.set(lane, now);
    if (readers <= workers) {
      this.since.delete(lane);
      return this.lines[lane].worked();
    }
    const since = this.since.get(lane) ?? now;
    this.since.set(lane, since);
    if (now - since < foreignAfterMs) return;
    this.lines[lane].failed(new ReadByOthers(queue, readers, workers), { lane, queue, readers, workers });
  }
}

import { Injectable, Logger } from '@nestjs/common';
import { Postgres } from '../infra/postgres/postgres.js';
import type { HandedOut } from '../ledger/delivery.js';
import type { HandedOutTogether } from '../ledger/handed-out.js';
import { putBack } from '../ledger/put-back.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { cutIntoChunks, mostOfChunk } from './chunk.js';
import { DeliveryQueue, laneOf, lanes, type Lane } from './delivery-queue.js';
import { recordQueueCreation } from './progress-reports.js';
import { QueueNotReached } from './queue-not-reached.js';
import { betweenTrialsMs } from './unconfirmed-chunks.js';

/**
 * Deliveries that have failed or were held, in the queue, for each worker: it has as many again in hand. A subscription
 * that is alone may have no more under way (src/ledger/release-window.ts), and a worker does not run out of them before
 * more are released.
 */
const slowOfWorker = 2048;

/** Workers that take what is in the queue. */
export const workersOf = (queue: DeliveryQueue, heartbeat: Pick<Heartbeat, 'workers'>): number =>
  queue.process === null ? heartbeat.workers : 1;

/** How long deliveries that the queue refused stay in the ledger before they are handed out again. */
export const refusedDelayMs = 1000;

/** Publishes the deliveries that the ledger handed out, and puts those that the queue refuses back into the ledger. */
@Injectable()
export class Enqueuer {
  private readonly logger = new Logger(Enqueuer.name);

  constructor(
    private readonly queue: DeliveryQueue,
    private readonly postgres: Postgres,
    private readonly heartbeat: Heartbeat,
    private readonly ledgerClock: LedgerClock,
  ) {
    queue.onCreated(() => void this.reportCreation());
  }

  /** False while the queue would refuse: leave new work to the dispatcher then. */
  get isAccepting(): boolean {
    return this.queue.isAccepting;
  }

  /** The same, of work of one lane. */
  accepts(lane: Lane): boolean {
    return this.queue.accepts(lane);
  }

  /** A lane that is only tried now and then: all that waits for it is refused, and nothing else need wait. */
  isSilent(lane: Lane): boolean {
    return this.queue.isSilent(lane);
  }

  /** The process whose memory the queue is, and whose end empties it; null where a broker keeps it. */
  get process(): string | null {
    return this.queue.process;
  }

  /**
   * How many deliveries may be released that are no probes, so that those and retries do not wait long in their lane.
   * Where the queue cannot be asked, it says itself whether it takes them.
   */
  async roomForReleased(): Promise<number> {
    const most = slowOfWorker * Math.max(1, workersOf(this.queue, this.heartbeat));
    try {
      return Math.max(0, most - (await this.queue.depth('slow')) * mostOfChunk);
    } catch (error) {
      return error instanceof QueueNotReached ? most : Infinity; // it is empty, most likely: a worker starts or stops
    }
  }

  /**
   * Never throws. Resolves when the queue has confirmed or refused everything; a publisher's answer does not wait for
   * it.
   * @returns how many deliveries were refused
   */
  async enqueue(lane: Lane, deliveries: HandedOut[], catalogueVersion: number, queuedAt: number): Promise<number> {
    const refused = await Promise.all(
      cutIntoChunks(deliveries, catalogueVersion, queuedAt).map(async (chunk) =>
        (await this.queue.publish(lane, chunk)) === 'confirmed' ? [] : chunk.deliveries,
      ),
    );
    const back = refused.flat();
    if (back.length === 0) return 0;
    // A lane that is silent says so itself.
    if (!this.isSilent(lane)) this.logger.warn({ event: 'queue.refused', deliveries: back.length });
    // Sooner they would only be refused again, each time at the cost of two writes of the ledger. Where it is the lane
    // that they go by next: those of `fresh` go by `due`.
    const next = lane === 'fresh' ? 'due' : lane;
    await this.putBack(back, this.isSilent(next) ? betweenTrialsMs : refusedDelayMs);
    return back.length;
  }

  /**
   * The same for what the ledger has just handed out: each delivery goes to its lane.
   * @returns the lanes that refused some
   */
  async enqueueAll({ deliveries, catalogueVersion, queuedAt }: HandedOutTogether): Promise<Lane[]> {
    const enqueueOf = (lane: Lane) => {
      const ofLane = deliveries.filter((delivery) => laneOf(delivery) === lane);
      return this.enqueue(lane, ofLane, catalogueVersion, queuedAt);
    };
    const refused = await Promise.all(lanes.map(enqueueOf));
    return lanes.filter((_, nr) => refused[nr]! > 0);
  }

  /** Deliveries that were handed out, and that no worker will get. Never throws. */
  async putBack(deliveries: HandedOut[], delayMs = refusedDelayMs): Promise<void> {
    try {
      await putBack(this.postgres, deliveries, delayMs);
    } catch (error) {
      // A recovery rule finds later that no worker has them.
      this.logger.warn({ event: 'ledger.put-back-failed', deliveries: deliveries.length, error });
    }
  }

  private async reportCreation(): Promise<void> {
    try {
      await recordQueueCreation(this.postgres, this.ledgerClock.now());
    } catch (error) {
      // The dispatcher finds later, by the position of the workers, which deliveries the former queue lost.
      this.logger.warn({ event: 'queue.creation-not-reported', error });
    }
  }
}

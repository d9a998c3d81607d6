import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { setMaxListeners } from 'node:events';
import { Admission } from '../endpoints/admission.service.js';
import { Clock } from '../infra/clock.js';
import type { HandedOut } from '../ledger/delivery.js';
import { DeliveriesInHand } from '../ledger/keep-in-hand.service.js';
import { BacklogPace } from '../queue/backlog-pace.service.js';
import type { Chunk } from '../queue/chunk.js';
import { DeliveryQueue, lanes, perLane, type Consumption, type Lane, type Taken } from '../queue/delivery-queue.js';
import { HandOver } from '../queue/hand-over.service.js';
import { QueueProgress } from '../queue/queue-progress.service.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { Tracing } from '../telemetry/tracing.js';
import { traceWaiting } from './attempt-span.js';
import { ChunkLoader, type LoadedChunk } from './chunk-loader.service.js';
import { DeliverService, type Surroundings } from './deliver.service.js';
import { Intake, prefetch } from './intake.js';
import { Unacknowledged } from './unacknowledged.js';
import { Stopping, untilItWorks } from './until-it-works.js';
import { WebhookClient } from './webhook-client.js';

/**
 * A chunk is acknowledged this long after the first of its deliveries began, at the latest; sooner where many chunks
 * wait for that (unacknowledged.ts). From then on a lease covers each that is not settled, so that a hanging receiver
 * keeps no later chunk waiting. Longer than a delivery waits for room at its endpoint: a shorter time would put
 * deliveries in hand, at the price of one more write each, that are about to be settled.
 */
const detachAfterMs = 300;
/**
 * Deliveries that were handed over get the lease of all that is in hand after this time: well before their first one
 * ends (15 s), and late enough that those behind a burst are settled by then and cost no further write.
 */
const keptAfterMs = 5000;
/** Of the 15 s that stopping may take. Calls that are still open then are abandoned. */
const drainMs = 11_000;

/** How a chunk came. */
interface Arrival {
  lane: Lane | 'handed-over';
  isRedelivered: boolean;
  /** Aborted when its chunk is back in the queue; not of what was handed over. */
  givenBack?: AbortSignal;
}

/** @throws {Stopping} */
function throwIfGivenBack({ givenBack }: Arrival): void {
  if (givenBack?.aborted) throw new Stopping();
}

/**
 * Takes chunks, from the queue and those that are handed over, and has their deliveries sent. A chunk of the queue is
 * acknowledged when the ledger can do without it.
 */
@Injectable()
export class Worker implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(Worker.name);
  private readonly stopping = new AbortController();
  private readonly intake: Intake;
  private consumptions: Pick<Consumption, 'stop'>[] = [];
  /** Chunks that are being begun, and deliveries that have not ended. */
  private inHandNow = 0;
  /** Three quarters of what the queue hands over. */
  private readonly unacknowledged = perLane((lane) => new Unacknowledged((prefetch[lane] * 3) / 4));

  constructor(
    private readonly clock: Clock,
    queue: DeliveryQueue,
    private readonly handOver: HandOver,
    private readonly pace: BacklogPace,
    progress: QueueProgress,
    private readonly loader: ChunkLoader,
    private readonly deliverService: DeliverService,
    private readonly admission: Admission,
    private readonly inHand: DeliveriesInHand,
    private readonly webhooks: WebhookClient,
    private readonly heartbeat: Heartbeat,
    private readonly ledgerClock: LedgerClock,
    private readonly tracing: Tracing,
  ) {
    // All deliveries of a worker listen to this one signal: hundreds of listeners are no leak here.
    setMaxListeners(0, this.stopping.signal);
    this.intake = new Intake(queue, heartbeat, progress, (taken, givenBack) => this.take(taken, givenBack));
  }

  /** Nothing that it has taken is left to do: calls may be open long after the queue has forgotten their chunk. */
  get isIdle(): boolean {
    return this.inHandNow === 0;
  }

  async onApplicationBootstrap(): Promise<void> {
    this.admission.watchQueue(() => lanes.some((lane) => this.unacknowledged[lane].areMany));
    await this.intake.start();
    this.consumptions = [this.intake, this.handOver.consume((chunk) => this.takeHandedOver(chunk))];
  }

  /**
   * Takes no more, holds what waits for room, and finishes what has it. A call that does not end in time is abandoned,
   * and the ledger is told so if it answers.
   */
  async onModuleDestroy(): Promise<void> {
    const abandon = setTimeout(() => {
      this.stopping.abort(new Stopping());
      this.webhooks.abandonAll();
    }, drainMs);
    const stopped = this.consumptions.map((consumption) => consumption.stop());
    this.pace.stop();
    this.admission.stop(); // a delivery that waits for room would keep its chunk, and so this process, until it was sent
    await Promise.all(stopped);
    await this.admission.drained();
    clearTimeout(abandon);
    this.stopping.abort(new Stopping());
    await this.webhooks.close();
  }

  /**
   * The queue forgets the chunk when this resolves: each delivery is settled, in this process' hand, or no longer
   * queued.
   */
  private async take({ chunk, lane, isRedelivered }: Taken, givenBack: AbortSignal): Promise<void> {
    const freeMemory = lane === 'fresh' ? this.handOver.occupy(chunk) : undefined;
    const unsettled = new Set(chunk.deliveries);
    try {
      await this.beginAll(chunk, { lane, isRedelivered, givenBack }, unsettled, this.unacknowledged[lane]);
      // Where not even that can be written, the chunk goes back to the queue.
      await this.keep(unsettled, givenBack);
    } finally {
      freeMemory?.();
    }
  }

  /**
   * Its deliveries are in this process' hand already, but with a lease that is meant for those that are settled soon.
   */
  private async takeHandedOver(chunk: Chunk): Promise<void> {
    const unsettled = new Set(chunk.deliveries);
    // All else that happens to them is found when their lease ends.
    const report = (error: unknown) => {
      if (!(error instanceof Stopping))
        this.logger.error({ event: 'delivery.broken', deliveries: unsettled.size, error });
    };
    const keeping = setTimeout(() => void this.keep(unsettled).catch(report), keptAfterMs);
    await this.beginAll(chunk, { lane: 'handed-over', isRedelivered: false }, unsettled).catch(report);
    if (unsettled.size === 0) clearTimeout(keeping);
  }

  private trace(chunk: Chunk, lane: Lane | 'handed-over'): void {
    const { tracer } = this.tracing;
    if (tracer) traceWaiting(tracer, chunk, lane, Math.max(0, this.ledgerClock.now() - chunk.queuedAt));
  }

  private async keep(unsettled: ReadonlySet<HandedOut>, givenBack?: AbortSignal): Promise<void> {
    if (unsettled.size === 0) return;
    const keep = async () => {
      if (!givenBack?.aborted) await this.inHand.keep([...unsettled]);
    };
    await untilItWorks(keep, this.clock, this.stopping.signal);
  }

  /** Takes from `unsettled` what is settled; while the process stops, that may be none. */
  private async beginAll(
    chunk: Chunk,
    arrival: Arrival,
    unsettled: Set<HandedOut>,
    unacknowledged?: Unacknowledged,
  ): Promise<void> {
    const { signal } = this.stopping;
    this.inHandNow++;
    try {
      this.trace(chunk, arrival.lane);
      signal.throwIfAborted();
      const load = async () => {
        throwIfGivenBack(arrival);
        return this.loader.load(chunk, arrival.isRedelivered);
      };
      const loaded = await untilItWorks(load, this.clock, signal);
      throwIfGivenBack(arrival);
      unsettled.clear();
      for (const delivery of loaded.deliveries) unsettled.add(delivery);
      await this.begin(
        { ...loaded, queuedAt: chunk.queuedAt },
        arrival,
        (delivery) => unsettled.delete(delivery),
        unacknowledged,
      );
    } catch (error) {
      if (!(error instanceof Stopping)) throw error;
    } finally {
      this.inHandNow--;
    }
  }

  /**
   * Resolves when all have been tried, or a moment after the first of them began; of what was handed over, only when
   * all have.
   */
  private begin(
    { queuedAt, deliveries, bodies }: LoadedChunk & Pick<Chunk, 'queuedAt'>,
    arrival: Arrival,
    onSettled: (delivery: HandedOut) => void,
    unacknowledged?: Unacknowledged,
  ): Promise<void> {
    const { lane, isRedelivered } = arrival;
    return new Promise((resolve) => {
      let detaching: NodeJS.Timeout | undefined;
      let acknowledged: (() => void) | undefined;
      let isDetached = false;
      const detach = () => {
        isDetached = true;
        acknowledged?.();
        resolve();
      };
      const isHandedOver = lane === 'handed-over';
      const onBegun = isHandedOver ? () => {} : () => (detaching ??= setTimeout(detach, detachAfterMs));
      const { signal: stopping } = this.stopping;
      const since = this.clock.now();
      const surroundings = { bodies, onBegun, stopping, isHandedOver, queuedAt, isRedelivered, since };
      const starts = lane === 'due' || lane === 'slow' ? deliveries.map(() => this.pace.start(lane)) : [];
      const waiting = starts.filter((start) => start !== undefined);
      const all = Promise.all(
        deliveries.map((delivery, nr) => this.deliver(delivery, starts[nr], arrival, surroundings, onSettled)),
      );
      // Not sooner: more would come in the place of each chunk that has not begun, and nothing would bound them.
      const join = () => {
        if (!isDetached) acknowledged = unacknowledged?.add({ deliveries: deliveries.length, detach: resolve });
      };
      if (waiting.length === 0) join();
      else void Promise.all(waiting).then(join);
      void all.finally(() => {
        clearTimeout(detaching);
        detach();
      });
    });
  }

  private async deliver(
    delivery: HandedOut,
    start: Promise<void> | undefined,
    arrival: Arrival,
    surroundings: Surroundings,
    onSettled: (delivery: HandedOut) => void,
  ): Promise<void> {
    this.inHandNow++;
    try {
      if (start) await start;
      throwIfGivenBack(arrival);
      surroundings.stopping.throwIfAborted();
      await this.deliverService.deliver(delivery, surroundings);
      onSettled(delivery);
    } catch (error) {
      if (error instanceof Stopping) return; // a recovery rule finds it
      this.logger.error({ event: 'delivery.broken', notificationId: delivery.notificationId, error });
    } finally {
      this.inHandNow--;
    }
  }
}

import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { Heartbeat } from '../infra/postgres/heartbeat.service.js';
import { Leases } from '../ledger/leases.service.js';
import { Ledger } from '../ledger/ledger.service.js';
import type { Chunk, QueuedDelivery } from '../queue/chunk.js';
import { DeliveryQueue, lanes, type Consumption, type Lane, type Taken } from '../queue/delivery-queue.js';
import { Capacity } from './capacity.js';
import { DeliverService } from './deliver.service.js';
import { QueueProgress } from './queue-progress.js';
import { untilItWorks } from './until-it-works.js';
import { WebhookClient } from './webhook-client.js';

/** Chunks a worker has unacknowledged per lane. The slow lane's must not fill the worker. */
const prefetch: Record<Lane, number> = { due: 64, slow: 16 };
/** From the first call of a chunk: then lease and lock cover what is unfinished, and a hanging receiver blocks no one. */
const detachAfterMs = 100;
/** A chunk this old has waited behind others: meanwhile it may have been cancelled, or handed out again. */
const freshMs = 1000;
const progressIntervalMs = 1000;
/** Of the 15 s that stopping may take; what is then still open is abandoned and sent again by somebody else. */
const drainMs = 11_000;

/** Takes chunks from the queue, has their deliveries sent, and lets the queue forget them when the ledger knows. */
@Injectable()
export class Worker implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(Worker.name);
  private readonly capacity: Capacity;
  private readonly underWay = new Set<Promise<boolean>>();
  private readonly progress: Record<Lane, QueueProgress> = { due: new QueueProgress(), slow: new QueueProgress() };
  private consumptions: Consumption[] = [];
  private reporting: NodeJS.Timeout | undefined;
  private readonly stopping = new AbortController();

  constructor(
    config: Config,
    private readonly queue: DeliveryQueue,
    private readonly catalogue: Catalogue,
    private readonly ledger: Ledger,
    private readonly leases: Leases,
    private readonly heartbeat: Heartbeat,
    private readonly deliveries: DeliverService,
    private readonly webhooks: WebhookClient,
  ) {
    this.capacity = new Capacity(config.settings.MAX_IN_FLIGHT);
  }

  async onApplicationBootstrap(): Promise<void> {
    this.consumptions = await Promise.all(
      lanes.map((lane) => this.queue.consume(lane, prefetch[lane], (taken) => this.take(taken))),
    );
    this.reporting = setInterval(() => void this.recordProgress(), progressIntervalMs).unref();
  }

  /** Takes no more and finishes what it has; what does not end in time is given back. */
  async onModuleDestroy(): Promise<void> {
    clearInterval(this.reporting);
    const abandon = setTimeout(() => {
      this.stopping.abort();
      this.webhooks.abandonAll();
    }, drainMs);
    await Promise.all(this.consumptions.map((consumption) => consumption.stop()));
    await Promise.all(this.underWay);
    clearTimeout(abandon);
    this.stopping.abort();
    await this.webhooks.close();
  }

  private async take({ chunk, lane, isRedelivered }: Taken): Promise<void> {
    this.progress[lane].take(chunk.queuedAt);
    try {
      await this.work(chunk, isRedelivered);
    } finally {
      this.progress[lane].finish(chunk.queuedAt);
    }
  }

  private async work(chunk: Chunk, isRedelivered: boolean): Promise<void> {
    const deliveries = await untilItWorks(() => this.prepare(chunk, isRedelivered), this.stopping.signal);
    if (!deliveries) return this.own(chunk.deliveries); // stopping: this process's end frees them
    const unfinished = new Set<QueuedDelivery>();
    await new Promise<void>((done) => {
      let detaching: NodeJS.Timeout | undefined;
      const onSending = () => (detaching ??= setTimeout(done, detachAfterMs));
      const buffers = new Map<string, Buffer>(); // one for all deliveries of a notification
      const all = deliveries.map((delivery) => {
        let body = buffers.get(delivery.notificationId);
        if (!body) buffers.set(delivery.notificationId, (body = Buffer.from(delivery.body)));
        unfinished.add(delivery);
        return this.deliver(delivery, body, onSending).then((isSettled) => isSettled && unfinished.delete(delivery));
      });
      void Promise.all(all).finally(() => {
        clearTimeout(detaching);
        done();
      });
    });
    if (unfinished.size > 0) await this.own([...unfinished]);
  }

  /** What of the chunk is to be sent, each with its text, by a catalogue that is new enough. */
  private async prepare(chunk: Chunk, isRedelivered: boolean): Promise<(QueuedDelivery & { body: string })[]> {
    await this.catalogue.reach(chunk.catalogueVersion);
    const ageMs = this.heartbeat.ledgerNow() - chunk.queuedAt;
    const isFresh = !isRedelivered && ageMs < freshMs && ageMs > -freshMs;
    const deliveries = isFresh ? chunk.deliveries : await this.leases.stillQueued(chunk.deliveries);
    const missing = [
      ...new Set(deliveries.filter(({ body }) => body === null).map((delivery) => delivery.notificationId)),
    ];
    const bodies = missing.length > 0 ? await this.ledger.bodies(missing) : new Map<string, string>();
    return deliveries.flatMap((delivery) => {
      const body = delivery.body ?? bodies.get(delivery.notificationId);
      return body === undefined ? [] : [{ ...delivery, body }]; // its day was dropped: past retention
    });
  }

  /** @returns false if it did not get so far that the ledger knows what came of it */
  private deliver(delivery: QueuedDelivery, body: Buffer, onSending: () => void): Promise<boolean> {
    const work = this.deliverInTurn(delivery, body, onSending).finally(() => this.underWay.delete(work));
    this.underWay.add(work);
    return work;
  }

  private async deliverInTurn(delivery: QueuedDelivery, body: Buffer, onSending: () => void): Promise<boolean> {
    await this.capacity.take();
    try {
      return await this.deliveries.deliver(delivery, body, { onSending, stopping: this.stopping.signal });
    } catch (error) {
      this.logger.error({ event: 'delivery.broken', notificationId: delivery.notificationId, error });
      return false;
    } finally {
      this.capacity.giveBack();
    }
  }

  private async own(deliveries: QueuedDelivery[]): Promise<void> {
    try {
      await this.leases.own(deliveries, this.heartbeat.processId);
    } catch (error) {
      // Then only the lease brings them back if this process dies.
      this.logger.warn({ event: 'ledger.own-failed', deliveries: deliveries.length, error });
    }
  }

  private async recordProgress(): Promise<void> {
    const reports = lanes.flatMap((lane) => {
      const report = this.progress[lane].report();
      return report ? [{ lane, ...report }] : [];
    });
    if (reports.length === 0) return;
    try {
      await this.leases.recordProgress(reports);
    } catch (error) {
      this.logger.warn({ event: 'ledger.progress-failed', error });
    }
  }
}

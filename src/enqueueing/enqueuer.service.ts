import { Injectable, Logger } from '@nestjs/common';
import { Heartbeat } from '../infra/postgres/heartbeat.service.js';
import type { Delivery } from '../ledger/delivery.js';
import { Leases } from '../ledger/leases.service.js';
import { cutIntoChunks, type QueuedDelivery } from '../queue/chunk.js';
import { DeliveryQueue, type Lane } from '../queue/delivery-queue.js';

/** How long the ledger keeps what the queue refused before it is handed out again. */
export const refusedDelayMs = 1000;

/** Brings to the queue what the ledger handed out, and back to the ledger what the queue does not take. */
@Injectable()
export class Enqueuer {
  private readonly logger = new Logger(Enqueuer.name);

  constructor(
    private readonly queue: DeliveryQueue,
    private readonly leases: Leases,
    private readonly heartbeat: Heartbeat,
  ) {
    queue.onCreated(() => void this.freeWhatTheQueueHeld());
  }

  /** False while the queue would refuse: leave new work to the dispatcher then. */
  get isAccepting(): boolean {
    return this.queue.isAccepting;
  }

  /** Process that must be alive for the queue to hold anything; null where a broker does. */
  get owner(): string | null {
    return this.queue.owner;
  }

  /**
   * Never throws. Resolves when the queue has confirmed or refused everything; who answers a publisher does not wait for it.
   * @returns how many deliveries were refused
   */
  async enqueue(lane: Lane, deliveries: QueuedDelivery[], catalogueVersion: number, queuedAt: number): Promise<number> {
    const refused = await Promise.all(
      cutIntoChunks(deliveries, catalogueVersion, queuedAt).map(async (chunk) => {
        if ((await this.queue.publish(lane, chunk)) === 'taken') return [];
        return chunk.deliveries;
      }),
    );
    const back = refused.flat();
    if (back.length > 0) await this.putBack(back);
    return back.length;
  }

  private async putBack(deliveries: Delivery[]): Promise<void> {
    this.logger.warn({ event: 'queue.refused', deliveries: deliveries.length });
    try {
      await this.leases.putBack(deliveries, refusedDelayMs);
    } catch (error) {
      // The lease brings them back, only later.
      this.logger.warn({ event: 'ledger.put-back-failed', deliveries: deliveries.length, error });
    }
  }

  private async freeWhatTheQueueHeld(): Promise<void> {
    try {
      await this.leases.freeQueued(this.heartbeat.ledgerNow());
      this.logger.log({ event: 'ledger.freed-queued' });
    } catch (error) {
      this.logger.warn({ event: 'ledger.free-queued-failed', error });
    }
  }
}

import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Batcher } from '../infra/batcher.js';
import { Postgres } from '../infra/postgres/postgres.js';
import type { HandOut } from '../ledger/acceptance.js';
import { mostInHand, type DeliveryKey } from '../ledger/delivery.js';
import { passTurns } from '../ledger/pass-turn.js';
import { Enqueuer } from '../queue/enqueuer.service.js';
import { SubscriptionsService } from '../subscriptions/subscriptions.service.js';

/** Passes on the turns of deliveries that have ended in this worker, and publishes those that get them. */
@Injectable()
export class Turns implements OnApplicationShutdown {
  private readonly logger = new Logger(Turns.name);
  private readonly batcher = new Batcher<DeliveryKey, void>((batch) => this.passTogether(batch), {
    maxItems: 256,
    lingerMs: 2,
    room: { items: mostInHand },
    turnWithinMs: 30_000,
  });

  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly postgres: Postgres,
    private readonly enqueuer: Enqueuer,
  ) {}

  /**
   * Returns at once; does nothing where the subscription keeps no order. What cannot be passed on now is left to a rule
   * of the dispatcher.
   */
  passOn(ended: DeliveryKey): void {
    if (this.subscriptions.find(ended.subscriptionId)?.ordering !== 'per-object') return;
    this.batcher.add(ended).catch((error: unknown) => {
      const { notificationId, subscriptionId } = ended;
      this.logger.warn({ event: 'delivery.turn-not-passed', notificationId, subscriptionId, error });
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.batcher.drain();
  }

  private async passTogether(batch: DeliveryKey[]): Promise<void[]> {
    const { isAccepting, process } = this.enqueuer;
    // While the queue would refuse, the dispatcher hands them out later.
    const handOut: HandOut = isAccepting ? { state: 'queued', process } : { state: 'waiting', delayMs: 0 };
    const passedOn = await passTurns(this.postgres, batch, handOut);
    if (handOut.state === 'queued') void this.enqueuer.enqueueAll(passedOn);
    return batch.map(() => undefined);
  }
}

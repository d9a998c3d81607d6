import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Batcher } from '../infra/batcher.js';
import { Postgres } from '../infra/postgres/postgres.js';
import type { HandOut } from '../ledger/acceptance.js';
import { inHandBounds, type DeliveryKey } from '../ledger/delivery.js';
import { mostRounds, passTurnsOnce } from '../ledger/pass-turn.js';
import { Enqueuer } from '../queue/enqueuer.service.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';

/** A delivery that has ended, and how often its turn was to be passed on. */
interface Ended extends DeliveryKey {
  rounds: number;
}

/** Passes on the turns of deliveries that have ended in this worker, and publishes those that get them. */
@Injectable()
export class Turns implements OnApplicationShutdown {
  private readonly logger = new Logger(Turns.name);
  private isStopping = false;
  private readonly batcher = new Batcher<Ended, void>((batch) => this.passTogether(batch), {
    maxItems: 256,
    lingerMs: 2,
    ...inHandBounds,
  });

  constructor(
    private readonly subscriptions: SubscriptionDirectory,
    private readonly postgres: Postgres,
    private readonly enqueuer: Enqueuer,
  ) {}

  /**
   * Returns at once; does nothing where the subscription keeps no order. A turn that cannot be passed on now is left to
   * a rule of the dispatcher.
   */
  passOn(ended: DeliveryKey): void {
    if (this.subscriptions.find(ended.subscriptionId)?.ordering !== 'per-object') return;
    this.add({ ...ended, rounds: 0 });
  }

  /** No turn is being passed on: the queue has those that have got one. */
  get isIdle(): boolean {
    return this.batcher.isIdle;
  }

  private add(ended: Ended): void {
    this.batcher.add(ended).catch((error: unknown) => {
      const { notificationId, subscriptionId } = ended;
      this.logger.warn({ event: 'delivery.turn-not-passed', notificationId, subscriptionId, error });
    });
  }

  async onApplicationShutdown(): Promise<void> {
    this.isStopping = true;
    await this.batcher.drain();
  }

  private async passTogether(batch: Ended[]): Promise<void[]> {
    const { isAccepting, process } = this.enqueuer;
    // While the queue would refuse, the dispatcher hands them out later.
    const handOut: HandOut = isAccepting ? { state: 'queued', process } : { state: 'waiting', delayMs: 0 };
    const left = await passTurnsOnce(this.postgres, batch, handOut, (passedOn) => {
      if (handOut.state === 'queued') void this.enqueuer.enqueueAll(passedOn);
    });
    // With the next batch, not in this one: where much of a line was cancelled it takes many rounds, and everybody's
    // turns would wait.
    for (const { rounds, ...key } of left)
      if (!this.isStopping && rounds + 1 < mostRounds) this.add({ ...key, rounds: rounds + 1 });
    return batch.map(() => undefined);
  }
}

import { Injectable, Logger } from '@nestjs/common';
import { v7 as uuidv7 } from 'uuid';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Enqueuer, refusedDelayMs } from '../enqueueing/enqueuer.service.js';
import { Batcher } from '../infra/batcher.js';
import { UnavailableProblem, ValidationProblem } from '../infra/http/problem.js';
import { isDataError } from '../infra/postgres/postgres-errors.js';
import { Ledger, longestTravellingBody, type Accepted } from '../ledger/ledger.service.js';
import type { QueuedDelivery } from '../queue/chunk.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';

/** A publication that was found valid. */
export interface Publication {
  channel: string;
  /** What subscriptions filter on, by canonical name. */
  characteristics: ReadonlyMap<string, string>;
  /** The exact text every receiver gets. */
  body: string;
  /** Client id. */
  publisher: string;
}

interface Numbered extends Publication {
  id: string;
}

const maxTogether = 256;
const lingerMs = 2;
const unavailableRetrySeconds = 2;

/**
 * Hot path, first half: accept → match → commit → enqueue. Publications that arrive together are committed together; each
 * caller is answered after the commit, and none waits for the queue.
 */
@Injectable()
export class PublishService {
  private readonly logger = new Logger(PublishService.name);
  private readonly accepting = new Batcher<Numbered, void>((batch) => this.acceptTogether(batch), {
    maxItems: maxTogether,
    lingerMs,
    concurrency: 2,
    isolate: isDataError,
  });

  constructor(
    private readonly catalogue: Catalogue,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly ledger: Ledger,
    private readonly enqueuer: Enqueuer,
  ) {}

  /**
   * @returns the notification's id, once it and its deliveries are committed
   * @throws {UnavailableProblem} when they could not be; the publisher should repeat
   */
  async publish(publication: Publication): Promise<string> {
    const id = uuidv7();
    try {
      await this.accepting.add({ ...publication, id });
    } catch (error) {
      if (isDataError(error)) {
        this.logger.warn({ event: 'notification.refused', notificationId: id, error });
        throw new ValidationProblem([
          { name: 'nonFieldErrors', code: 'invalid', reason: 'The notification holds a value that cannot be stored.' },
        ]);
      }
      this.logger.error({ event: 'notification.not-committed', notificationId: id, error });
      throw new UnavailableProblem('The notification could not be stored. Publish it again.', unavailableRetrySeconds, error);
    }
    return id;
  }

  private async acceptTogether(batch: Numbered[]): Promise<void[]> {
    const isQueueOpen = this.enqueuer.isAccepting;
    const { accepted, version, queuedAt } = await this.commit(batch, isQueueOpen);
    if (isQueueOpen) void this.enqueuer.enqueue('due', accepted.flatMap(deliveriesOf), version, queuedAt);
    for (const { id, channel, publisher, subscriptionIds } of accepted) {
      this.logger.log({ event: 'notification.accepted', notificationId: id, channel, publisher, deliveries: subscriptionIds.length });
    }
    return batch.map(() => undefined);
  }

  /** Matches with the catalogue in memory; the ledger refuses if that is no longer the latest, and matching is repeated. */
  private async commit(batch: Numbered[], isQueueOpen: boolean) {
    for (;;) {
      const { version } = this.catalogue;
      const accepted = batch.map((item): Accepted => {
        const { id, channel, publisher, body } = item;
        const subscriptionIds = this.subscriptions.match(channel, item.characteristics).map((subscription) => subscription.id);
        return { id, channel, publisher, body, subscriptionIds };
      });
      const found = await this.ledger.accept(
        version,
        accepted,
        isQueueOpen
          ? { state: 'queued', owner: this.enqueuer.owner }
          : { state: 'waiting', delayMs: refusedDelayMs },
      );
      if (found.version === version) return { accepted, version, queuedAt: found.queuedAt };
      await this.catalogue.reach(found.version);
    }
  }
}

function deliveriesOf({ id, body, subscriptionIds }: Accepted): QueuedDelivery[] {
  const travelling = Buffer.byteLength(body) <= longestTravellingBody ? body : null;
  return subscriptionIds.map((subscriptionId) => ({
    notificationId: id,
    subscriptionId,
    generation: 1,
    attempts: 0,
    failures: 0,
    replays: 0,
    body: travelling,
  }));
}

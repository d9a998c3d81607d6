import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { IsNull } from 'typeorm';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { NotFoundProblem } from '../infra/http/problem.js';
import { noteOrderEnding, withdrawOrderEnding } from '../ledger/end-of-order.js';
import { noteEnding, withdrawEnding } from '../ledger/end-of-subscription.js';
import { SubscriptionDirectory } from './subscription-directory.service.js';
import { SubscriptionEntity } from './subscription.entity.js';
import type { DeliveryGuarantee, Ordering, Subscription } from './subscription.js';

export type SubscriptionInput = Pick<Subscription, 'callbackUrl' | 'auth' | 'channels' | 'deliveryGuarantee'>;

/** Reads from memory, after loading the changes of other processes: a subscription that was answered with 201 is found. */
@Injectable()
export class SubscriptionsService {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly directory: SubscriptionDirectory,
  ) {}

  async list(): Promise<Subscription[]> {
    await this.catalogue.refresh();
    return this.directory.list();
  }

  /** From memory alone: for callers that know it to be new enough. */
  find(id: string): Subscription | undefined {
    return this.directory.find(id);
  }

  /** @throws {NotFoundProblem} */
  async get(id: string): Promise<Subscription> {
    await this.catalogue.refresh();
    return this.known(id);
  }

  async create(ownerClientId: string, input: SubscriptionInput): Promise<Subscription> {
    // v4, not v7: clients find the base of a resource URL with a pattern that fits v4 only (docs/decisions/0011).
    const id = randomUUID();
    await this.catalogue.change((manager, version) =>
      manager.insert(SubscriptionEntity, { ...input, id, ownerClientId, ordering: 'none', version }),
    );
    return this.known(id);
  }

  /**
   * An undefined field stays as it is. A disabled subscription is enabled: its callback was proved anew.
   * @throws {NotFoundProblem}
   */
  async update(id: string, changes: Partial<SubscriptionInput>): Promise<Subscription> {
    return this.write(id, { ...changes, disabledAt: null });
  }

  /** @throws {NotFoundProblem} */
  async setGuarantee(id: string, deliveryGuarantee: DeliveryGuarantee | null): Promise<Subscription> {
    return this.write(id, { deliveryGuarantee });
  }

  /**
   * With `per-object` it counts for notifications accepted from then on: those on their way are not waited for. With `none` what
   * is in line goes within seconds.
   * @throws {NotFoundProblem}
   */
  async setOrdering(id: string, ordering: Ordering): Promise<Subscription> {
    return this.write(id, { ordering });
  }

  /** @throws {NotFoundProblem} */
  async enable(id: string): Promise<Subscription> {
    return this.write(id, { disabledAt: null });
  }

  /**
   * Nothing more is sent until it is enabled. Deliveries that have not ended fail, those that wait within seconds; what has not
   * failed when it is enabled again is sent. Does nothing the second time.
   */
  async disable(id: string): Promise<void> {
    try {
      await this.catalogue.change(async (manager, version) => {
        const { affected } = await manager.update(
          SubscriptionEntity,
          { id, deletedAt: IsNull(), disabledAt: IsNull() },
          { disabledAt: new Date(), version },
        );
        if (affected === 0) throw new NothingToDisable();
        await noteEnding(manager, id, 'failed', version);
      });
    } catch (error) {
      // All open calls to a receiver may answer 410 together. The rollback keeps each of them from raising the version again.
      if (!(error instanceof NothingToDisable)) throw error;
    }
  }

  /**
   * No notification accepted after this goes to the subscription. Deliveries that have not ended are cancelled, those that wait
   * within seconds.
   * @throws {NotFoundProblem}
   */
  async remove(id: string): Promise<void> {
    await this.catalogue.change(async (manager, version) => {
      const { affected } = await manager.update(
        SubscriptionEntity,
        { id, deletedAt: IsNull() },
        { deletedAt: new Date(), version },
      );
      if (affected === 0) throw notFound();
      await noteEnding(manager, id, 'cancelled', version);
    });
  }

  private async write(id: string, changes: Partial<SubscriptionEntity>): Promise<Subscription> {
    await this.catalogue.change(async (manager, version) => {
      const { affected } = await manager.update(
        SubscriptionEntity,
        { id, deletedAt: IsNull() },
        { ...changes, version },
      );
      if (affected === 0) throw notFound();
      if (changes.disabledAt === null) await withdrawEnding(manager, id);
      if (changes.ordering === 'none') await noteOrderEnding(manager, id, version);
      else if (changes.ordering) await withdrawOrderEnding(manager, id);
    });
    return this.known(id);
  }

  private known(id: string): Subscription {
    const subscription = this.directory.find(id);
    if (!subscription) throw notFound();
    return subscription;
  }
}

class NothingToDisable extends Error {}

const notFound = () => new NotFoundProblem('There is no such abonnement.');

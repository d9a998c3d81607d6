import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { IsNull, type EntityManager } from 'typeorm';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { NotFoundProblem } from '../infra/http/problem.js';
import { SubscriptionDirectory } from './subscription-directory.service.js';
import { SubscriptionEntity } from './subscription.entity.js';
import type { DeliveryGuarantee, Subscription } from './subscription.js';

export type SubscriptionInput = Pick<Subscription, 'callbackUrl' | 'auth' | 'channels' | 'deliveryGuarantee'>;

/** Runs in the transaction that changes the subscription; a throw leaves it as it was. */
export type TransactionHook = (manager: EntityManager, subscriptionId: string) => Promise<void>;

/** Reads are from memory, after a look whether another process changed something: what was answered 201 is found. */
@Injectable()
export class SubscriptionsService {
  private readonly removalHooks: TransactionHook[] = [];
  private readonly disablingHooks: TransactionHook[] = [];

  constructor(
    private readonly catalogue: Catalogue,
    private readonly directory: SubscriptionDirectory,
  ) {}

  /** For those who keep something about subscriptions and of whom this capability knows nothing. */
  onRemoved(hook: TransactionHook): void {
    this.removalHooks.push(hook);
  }

  onDisabled(hook: TransactionHook): void {
    this.disablingHooks.push(hook);
  }

  async list(): Promise<Subscription[]> {
    await this.catalogue.refresh();
    return this.directory.list();
  }

  /** From memory alone: for those who know that it is new enough. */
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
    await this.catalogue.change((manager, revision) =>
      manager.insert(SubscriptionEntity, { ...input, id, ownerClientId, revision }),
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

  /** @throws {NotFoundProblem} */
  async enable(id: string): Promise<Subscription> {
    return this.write(id, { disabledAt: null });
  }

  /** Nothing more is sent until it is enabled; what is not over yet has failed. Once is enough, however often it is called. */
  async disable(id: string): Promise<void> {
    try {
      await this.catalogue.change(async (manager, revision) => {
        const { affected } = await manager.update(
          SubscriptionEntity,
          { id, deletedAt: IsNull(), disabledAt: IsNull() },
          { disabledAt: new Date(), revision },
        );
        if (affected === 0) throw new NothingToDisable();
        for (const hook of this.disablingHooks) await hook(manager, id);
      });
    } catch (error) {
      // A receiver answers all its calls with 410 at once. Rolled back, the catalogue gets no new version for each of them.
      if (!(error instanceof NothingToDisable)) throw error;
    }
  }

  /**
   * No notification accepted after this goes to the subscription.
   * @throws {NotFoundProblem}
   */
  async remove(id: string): Promise<void> {
    await this.catalogue.change(async (manager, revision) => {
      const { affected } = await manager.update(
        SubscriptionEntity,
        { id, deletedAt: IsNull() },
        { deletedAt: new Date(), revision },
      );
      if (affected === 0) throw notFound();
      for (const hook of this.removalHooks) await hook(manager, id);
    });
  }

  private async write(id: string, changes: Partial<SubscriptionEntity>): Promise<Subscription> {
    await this.catalogue.change(async (manager, revision) => {
      const { affected } = await manager.update(
        SubscriptionEntity,
        { id, deletedAt: IsNull() },
        { ...changes, revision },
      );
      if (affected === 0) throw notFound();
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

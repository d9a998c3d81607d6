import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { IsNull, type EntityManager } from 'typeorm';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { NotFoundProblem } from '../infra/http/problem.js';
import { SubscriptionDirectory } from './subscription-directory.service.js';
import { SubscriptionEntity } from './subscription.entity.js';
import type { Subscription } from './subscription.js';

export type SubscriptionInput = Pick<Subscription, 'callbackUrl' | 'auth' | 'channels'>;

/** Runs in the transaction that removes a subscription; a throw keeps it. */
export type RemovalHook = (manager: EntityManager, subscriptionId: string) => Promise<void>;

/** Reads are from memory, after a look whether another process changed something: what was answered 201 is found. */
@Injectable()
export class SubscriptionsService {
  private readonly removalHooks: RemovalHook[] = [];

  constructor(
    private readonly catalogue: Catalogue,
    private readonly directory: SubscriptionDirectory,
  ) {}

  /** For those who keep something about subscriptions and of whom this capability knows nothing. */
  onRemoved(hook: RemovalHook): void {
    this.removalHooks.push(hook);
  }

  async list(): Promise<Subscription[]> {
    await this.catalogue.refresh();
    return this.directory.list();
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
   * An undefined field stays as it is.
   * @throws {NotFoundProblem}
   */
  async update(id: string, changes: Partial<SubscriptionInput>): Promise<Subscription> {
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

  private known(id: string): Subscription {
    const subscription = this.directory.find(id);
    if (!subscription) throw notFound();
    return subscription;
  }
}

const notFound = () => new NotFoundProblem('There is no such abonnement.');

import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Catalogue, type CatalogueShelf } from '../catalogue/catalogue.service.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import type { RetryPolicyOverride } from './policy-input.js';
import { defaultRetryPolicy, type RetryPolicy } from './retry-schedule.js';

/** The general retry policy and what single subscriptions do differently, in memory: every failed attempt asks. */
@Injectable()
export class RetryPolicies implements CatalogueShelf {
  private generalPolicy: RetryPolicy = defaultRetryPolicy;
  private readonly overrides = new Map<string, RetryPolicyOverride>();

  constructor(
    private readonly postgres: Postgres,
    private readonly catalogue: Catalogue,
    subscriptions: SubscriptionsService,
  ) {
    catalogue.register(this);
    subscriptions.onRemoved(forgetOverride);
  }

  get general(): RetryPolicy {
    return this.generalPolicy;
  }

  /** The policy that counts for a subscription, known or not. */
  for(subscriptionId: string): RetryPolicy {
    const override = this.overrides.get(subscriptionId);
    return override ? { ...this.generalPolicy, ...override } : this.generalPolicy;
  }

  override(subscriptionId: string): RetryPolicyOverride | undefined {
    return this.overrides.get(subscriptionId);
  }

  async replaceGeneral(policy: RetryPolicy): Promise<void> {
    await this.catalogue.change(async (manager, revision) => {
      await manager.query(
        `INSERT INTO retry_policy (policy, revision) VALUES ($1, $2)
         ON CONFLICT (singleton) DO UPDATE SET policy = EXCLUDED.policy, revision = EXCLUDED.revision`,
        [JSON.stringify(policy), revision],
      );
    });
  }

  /** @param override what the subscription does differently; null: nothing any more */
  async replaceOverride(subscriptionId: string, override: RetryPolicyOverride | null): Promise<void> {
    await this.catalogue.change(async (manager, revision) => {
      await manager.query(
        `INSERT INTO subscription_retry_policy (subscription_id, policy, revision) VALUES ($1, $2, $3)
         ON CONFLICT (subscription_id) DO UPDATE SET policy = EXCLUDED.policy, revision = EXCLUDED.revision`,
        [subscriptionId, override && JSON.stringify(override), revision],
      );
    });
  }

  async refresh(revision: number): Promise<void> {
    const [general] = await this.postgres.query<{ policy: RetryPolicy }>(
      { name: 'retry-policy-since', text: 'SELECT policy FROM retry_policy WHERE revision > $1' },
      [revision],
    );
    // A field that came with a later version of Heraut is not in a policy stored before.
    if (general) this.generalPolicy = { ...defaultRetryPolicy, ...general.policy };
    const changed = await this.postgres.query<{ subscription_id: string; policy: RetryPolicyOverride | null }>(
      {
        name: 'retry-policy-overrides-since',
        text: 'SELECT subscription_id, policy FROM subscription_retry_policy WHERE revision > $1',
      },
      [revision],
    );
    for (const { subscription_id: subscriptionId, policy } of changed) {
      if (policy === null) this.overrides.delete(subscriptionId);
      else this.overrides.set(subscriptionId, policy);
    }
  }
}

/** In the transaction that removes the subscription, which has raised the catalogue's version already. */
async function forgetOverride(manager: EntityManager, subscriptionId: string): Promise<void> {
  await manager.query(
    `UPDATE subscription_retry_policy SET policy = NULL, revision = (SELECT version FROM catalogue)
     WHERE subscription_id = $1 AND policy IS NOT NULL`,
    [subscriptionId],
  );
}

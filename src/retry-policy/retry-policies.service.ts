import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Catalogue, type CatalogueDirectory } from '../catalogue/catalogue.service.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import type { RetryPolicyOverride } from './policy-input.js';
import { RetryPolicyChanges, storedGeneral, storedOverrides } from './retry-policy-changes.js';
import { defaultRetryPolicy, type RetryPolicy } from './retry-schedule.js';

const policySince = statement('retry-policy-since', 'SELECT policy FROM retry_policy WHERE version > $known');

/** Overrides that changed, and those of subscriptions that changed: a deleted subscription has no override any more. */
const overridesSince = statement(
  'retry-policy-overrides-since',
  `SELECT own.subscription_id, CASE WHEN s.deleted_at IS NULL THEN own.policy END AS policy
   FROM subscription_retry_policy own JOIN subscription s ON s.id = own.subscription_id WHERE own.version > $known
   UNION ALL
   SELECT own.subscription_id, CASE WHEN s.deleted_at IS NULL THEN own.policy END
   FROM subscription s JOIN subscription_retry_policy own ON own.subscription_id = s.id WHERE s.version > $known`,
);

/** The general retry policy and the overrides of subscriptions, in memory, because every failed attempt needs them. */
@Injectable()
export class RetryPolicies implements CatalogueDirectory {
  private generalPolicy: RetryPolicy = defaultRetryPolicy;
  private readonly overrides = new Map<string, RetryPolicyOverride>();

  constructor(
    private readonly postgres: Postgres,
    private readonly catalogue: Catalogue,
  ) {
    catalogue.register(this);
  }

  get general(): RetryPolicy {
    return this.generalPolicy;
  }

  /** The policy that counts for a subscription; the general one for an unknown subscription. */
  for(subscriptionId: string): RetryPolicy {
    const override = this.overrides.get(subscriptionId);
    return override ? { ...this.generalPolicy, ...override } : this.generalPolicy;
  }

  override(subscriptionId: string): RetryPolicyOverride | undefined {
    return this.overrides.get(subscriptionId);
  }

  /** @param mustFit throws where it may not replace the policy that there is */
  async replaceGeneral(policy: RetryPolicy, mustFit?: (before: RetryPolicy) => void): Promise<void> {
    await this.change((changes) => changes.replaceGeneral(policy, mustFit));
  }

  /**
   * @param override the fields in which the subscription differs; null: it follows the general policy again
   * @param check is shown the policies there are, before the change, and may throw; by then no other change is under
   *   way
   */
  async replaceOverride(
    subscriptionId: string,
    override: RetryPolicyOverride | null,
    check: (policy: RetryPolicy, override: RetryPolicyOverride | undefined) => void = () => {},
  ): Promise<void> {
    await this.change(async (changes, manager) => {
      const own = (await storedOverrides(manager, [subscriptionId])).get(subscriptionId);
      check({ ...(await storedGeneral(manager)), ...own }, own);
      return changes.replaceOverride(subscriptionId, override);
    });
  }

  async refresh(known: number): Promise<void> {
    const [general] = await this.postgres.query<{ policy: RetryPolicy }>(policySince, { known });
    // A field that came with a later version of Heraut is not in a policy stored before.
    if (general || known === 0) this.generalPolicy = { ...defaultRetryPolicy, ...general?.policy };
    const changed = await this.postgres.query<{ subscription_id: string; policy: RetryPolicyOverride | null }>(
      overridesSince,
      { known },
    );
    if (known === 0) this.overrides.clear();
    for (const { subscription_id: subscriptionId, policy } of changed) {
      if (policy === null) this.overrides.delete(subscriptionId);
      else this.overrides.set(subscriptionId, policy);
    }
  }

  private async change(
    work: (changes: RetryPolicyChanges, manager: EntityManager) => Promise<true | undefined>,
  ): Promise<void> {
    const changed = await this.catalogue.changeIfNeeded((manager, version) =>
      work(new RetryPolicyChanges(manager, version), manager),
    );
    // Where there was nothing to change, another process may have made this change a moment ago.
    if (!changed) await this.catalogue.refresh();
  }
}

import type { EntityManager } from 'typeorm';
import { AuditLog, isAnyChange, type Change } from '../audit/audit-log.js';
import { queryOf } from '../infra/postgres/query-of.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';
import type { RetryPolicyOverride } from './policy-input.js';
import { defaultRetryPolicy, type RetryPolicy } from './retry-schedule.js';

/** As it is stored; a field that came with a later version of Heraut gets its default. */
export async function storedGeneral(manager: EntityManager): Promise<RetryPolicy> {
  const [stored] = await manager.query<{ policy: RetryPolicy }[]>('SELECT policy FROM retry_policy');
  return { ...defaultRetryPolicy, ...stored?.policy };
}

/** Of those among the subscriptions that have one. */
export async function storedOverrides(
  manager: EntityManager,
  subscriptionIds: readonly string[],
): Promise<Map<string, RetryPolicyOverride>> {
  const rows = await manager.query<{ id: string; policy: RetryPolicyOverride }[]>(
    `SELECT subscription_id AS id, policy FROM subscription_retry_policy
     WHERE subscription_id = ANY($1::uuid[]) AND policy IS NOT NULL`,
    [subscriptionIds],
  );
  return new Map(rows.map(({ id, policy }) => [id, policy]));
}

const overrideRows = rowsOf<[id: string, override: RetryPolicyOverride | null]>('item', {
  subscription_id: ['uuid', ([id]) => id],
  policy: ['text', ([, override]) => override && JSON.stringify(override)],
});

const upsertOverrides = statement(
  'replace-overrides',
  `INSERT INTO subscription_retry_policy (subscription_id, policy, version)
   SELECT subscription_id, policy::jsonb, $version::bigint FROM ${overrideRows.from} ORDER BY subscription_id
   ON CONFLICT (subscription_id) DO UPDATE SET policy = EXCLUDED.policy, version = EXCLUDED.version`,
);

/** By subscription; null: it follows the general policy again. The caller notes them in the audit log, too. */
export async function writeOverrides(
  manager: EntityManager,
  version: number,
  overrides: ReadonlyMap<string, RetryPolicyOverride | null>,
): Promise<void> {
  if (overrides.size === 0) return;
  await queryOf(manager)(upsertOverrides, { ...overrideRows.bind([...overrides]), version });
}

/** For the audit log. */
export const noteOfOverride = (
  subscriptionId: string,
  before: RetryPolicyOverride | null,
  after: RetryPolicyOverride | null,
): Change => ({
  action: 'subscription.retry-policy-changed',
  subject: `subscription/${subscriptionId}`,
  before: { ...before },
  after: { ...after },
});

/** The changes of retry policies, within one change of the catalogue. Each is noted in the audit log. */
export class RetryPolicyChanges {
  constructor(
    private readonly manager: EntityManager,
    private readonly version: number,
  ) {}

  /**
   * @returns undefined: it is this policy already, and nothing was written
   * @param mustFit throws where it may not replace the policy that there is
   */
  async replaceGeneral(policy: RetryPolicy, mustFit?: (before: RetryPolicy) => void): Promise<true | undefined> {
    const before = await storedGeneral(this.manager);
    mustFit?.(before);
    const noted = { before: { ...before }, after: { ...policy } };
    const change = { action: 'retry-policy.changed', subject: 'retry-policy', ...noted };
    if (!isAnyChange(change)) return undefined;
    await this.manager.query(
      `INSERT INTO retry_policy (policy, version) VALUES ($1, $2)
       ON CONFLICT (singleton) DO UPDATE SET policy = EXCLUDED.policy, version = EXCLUDED.version`,
      [JSON.stringify(policy), this.version],
    );
    await AuditLog.note(this.manager, change);
    return true;
  }

  /**
   * @returns undefined: it differs in these fields already, and nothing was written
   * @param override the fields in which the subscription differs; null: it follows the general policy again
   */
  async replaceOverride(subscriptionId: string, override: RetryPolicyOverride | null): Promise<true | undefined> {
    const before = (await storedOverrides(this.manager, [subscriptionId])).get(subscriptionId) ?? null;
    const change = noteOfOverride(subscriptionId, before, override);
    if (!isAnyChange(change)) return undefined;
    await writeOverrides(this.manager, this.version, new Map([[subscriptionId, override]]));
    await AuditLog.note(this.manager, change);
    return true;
  }
}

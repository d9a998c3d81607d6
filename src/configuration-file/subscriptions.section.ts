import { Injectable } from '@nestjs/common';
import { Any, IsNull, Not } from 'typeorm';
import { Config } from '../config/config.module.js';
import { queryOf } from '../infra/postgres/query-of.js';
import { LongWork } from '../infra/long-work.js';
import type { OperationalEvent } from '../operational-events/operational-events.service.js';
import { storedOverrides } from '../retry-policy/retry-policy-changes.js';
import { SecretCipher } from '../secrets/secret-cipher.service.js';
import { storedSigningKeys } from '../subscriptions/replace-signing-keys.js';
import type { NamesOf } from '../subscriptions/shares.js';
import { SubscriptionAllowance, type ShareRefusal } from '../subscriptions/subscription-allowance.service.js';
import { SubscriptionEntity } from '../subscriptions/subscription.entity.js';
import { CallbackRules } from './callback-rules.js';
import type { ConfiguredSubscription } from './configuration-schema.js';
import { mostUnnamed, nothingPlanned, type Planned, type Planning, type Section } from './planning.js';
import type { Entry } from './read-configuration.js';
import { SubscriptionBatch } from './subscription-batch.js';
import { living, SubscriptionPlan, type StoredSubscription, type SubscriptionStep } from './subscription-plan.js';

/**
 * So many are written together, or fewer large ones: a round trip costs little for each of them, and a statement ends
 * soon.
 */
const mostTogether = 250;

type Entries = readonly Entry<ConfiguredSubscription>[];

interface Steps {
  steps: SubscriptionStep[];
  /** Entries that need none. */
  unchanged: number;
}

type Unnamed = Pick<SubscriptionEntity, 'id' | 'callbackUrl'>;

@Injectable()
export class SubscriptionsSection implements Section {
  constructor(
    private readonly cipher: SecretCipher,
    private readonly config: Config,
    private readonly callbacks: CallbackRules,
    private readonly allowance: SubscriptionAllowance,
  ) {}

  async plan(planning: Planning): Promise<Planned> {
    const { manager, configuration, options } = planning;
    const entries = configuration.subscriptions;
    if (!entries) return nothingPlanned;
    const seen = new Set<string>();
    const first = entries.filter(({ name, wanted }) => planning.isFirst(seen, wanted.id, `${name}.id`));
    const stored = await this.read(planning, [...seen]);
    const [others, count] = await manager.findAndCount(SubscriptionEntity, {
      select: { id: true, callbackUrl: true },
      where: { deletedAt: IsNull(), ...(seen.size > 0 && { id: Not(Any([...seen])) }) },
      order: { createdAt: 'ASC', id: 'ASC' },
      ...(!options.isPruning && { take: mostUnnamed }),
    });
    const removed = options.isPruning ? others.map(({ id }) => id) : [];
    const { steps, unchanged } = await this.stepsWithin(planning, first, stored, removed);
    if (options.looksUpCallbacks) {
      const isNew = ({ wanted: { id, callbackUrl } }: (typeof first)[number]) =>
        callbackUrl !== undefined && callbackUrl !== living(stored.get(id))?.entity.callbackUrl;
      await this.callbacks.check(planning, first.filter(isNew));
    }
    if (options.isPruning)
      return {
        ...this.inBatches([...steps, ...others.map(removal)]),
        unchanged,
        unnamed: nothingPlanned.unnamed,
      };
    return {
      ...this.inBatches(steps),
      unchanged,
      unnamed: { count, first: others.map(({ id, callbackUrl }) => `${id} ${callbackUrl}`) },
    };
  }

  /** Refuses what does not fit the shares of applications. */
  private async stepsWithin(
    planning: Planning,
    entries: Entries,
    stored: ReadonlyMap<string, StoredSubscription>,
    removed: readonly string[],
  ): Promise<Steps> {
    const { problems, options } = planning;
    const [problemsBefore, postponedBefore] = [problems.length, options.postponed?.length];
    let { refusals, ...found } = await this.stepsBeside(new Set(), planning, entries, stored, removed);
    if (refusals.length > 0 && postponedBefore !== undefined) {
      // The file may fit, and only channels that it no longer names are too many: a start must not fail for these.
      problems.splice(problemsBefore);
      options.postponed!.splice(postponedBefore);
      const full = new Set(refusals.map(({ clientId }) => clientId));
      ({ refusals, ...found } = await this.stepsBeside(full, planning, entries, stored, removed));
    }
    for (const { code, reason } of refusals) planning.refuse('subscriptions', code, reason);
    return found;
  }

  /** @param full client ids of applications that have no room for channels that the file no longer names */
  private async stepsBeside(
    full: ReadonlySet<string>,
    planning: Planning,
    entries: Entries,
    stored: ReadonlyMap<string, StoredSubscription>,
    removed: readonly string[],
  ): Promise<Steps & { refusals: ShareRefusal[] }> {
    const shares = await this.allowance.look(queryOf(planning.manager));
    const steps: SubscriptionStep[] = [];
    let unchanged = 0;
    const work = new LongWork();
    for (const entry of entries) {
      await work.yieldIfDue();
      const { id } = entry.wanted;
      const plan = new SubscriptionPlan(planning, entry, stored.get(id), this.cipher, this.config.settings);
      const step = await plan.step(full);
      if (step === 'unchanged') unchanged++;
      else if (step) {
        steps.push(step);
        shares.replace(id, plan.part);
      }
    }
    for (const id of removed) shares.replace(id, undefined);
    const namesOf: NamesOf = (channel) => planning.channels.get(channel)?.canonicalFilters;
    return { steps, unchanged, refusals: this.allowance.refusals(shares, namesOf) };
  }

  /** Deleted ones too. */
  private async read({ manager }: Planning, ids: string[]): Promise<Map<string, StoredSubscription>> {
    const rows = await manager.findBy(SubscriptionEntity, { id: Any(ids) });
    const keys = await storedSigningKeys(manager, this.cipher, ids);
    const overrides = await storedOverrides(manager, ids);
    return new Map(
      rows.map((entity) => [
        entity.id,
        { entity, signingKeys: keys.get(entity.id) ?? [], override: overrides.get(entity.id) ?? null },
      ]),
    );
  }

  private inBatches(steps: readonly SubscriptionStep[]): Pick<Planned, 'changes' | 'carryOut'> {
    return {
      changes: steps.map(({ change }) => change),
      carryOut: async (manager, version) => {
        const reported: OperationalEvent[][] = [];
        const work = new LongWork();
        for (let from = 0; from < steps.length; from += mostTogether) {
          const some = steps.slice(from, from + mostTogether);
          const ids = some.map(({ change }) => change.key);
          const batch = await SubscriptionBatch.of(manager, version, this.cipher, ids);
          for (const step of some) {
            await work.yieldIfDue();
            reported.push(await step.carryOut(batch));
            await batch.writeIfFull();
          }
          await batch.write();
        }
        return reported.flat();
      },
    };
  }
}

const removal = ({ id, callbackUrl }: Unnamed): SubscriptionStep => ({
  change: { section: 'subscriptions', action: 'remove', key: id, about: callbackUrl, fields: [], notes: [] },
  carryOut: async ({ changing }) => {
    await changing.remove(id);
    return [];
  },
});

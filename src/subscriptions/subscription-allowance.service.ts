import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ChannelDirectory } from '../channels/channel-directory.service.js';
import { Config } from '../config/config.module.js';
import { ConflictProblem } from '../infra/http/problem.js';
import type { Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { bytesInMemory, type Kept } from './bytes-in-memory.js';
import { countTogether } from './name-sets.js';
import { ChangingShares, type NamesOf, type Part } from './shares.js';
import { SubscriptionDirectory } from './subscription-directory.service.js';
import type { SubscriptionEntity } from './subscription.entity.js';
import { countSigningKeysSql } from './signing-key-rows.js';
import { showLargestShare } from './subscriptions.metrics.js';

type Stored = Kept & Pick<SubscriptionEntity, 'id' | 'ownerClientId' | 'deletedAt'>;

const columns = `id, owner_client_id AS "ownerClientId", callback_url AS "callbackUrl", auth, credentials,
  CASE WHEN deleted_at IS NULL THEN channels ELSE '[]' END AS channels, deleted_at AS "deletedAt",
  ${countSigningKeysSql('subscription.id')} AS "signingKeys"`;

/** Mostly none: memory is as old as its last look, a second at most. The contents of deleted ones do not matter. */
const partsChangedSince = statement(
  'parts-changed-since',
  `SELECT ${columns} FROM subscription WHERE version > $known`,
);

const partNow = statement('part-of-subscription', `SELECT ${columns} FROM subscription WHERE id = $id`);

export interface ShareRefusal {
  clientId: string;
  code: 'too-many-subscriptions' | 'subscriptions-too-large' | 'too-many-filter-names' | 'too-many-unfiltered';
  reason: string;
}

/**
 * Keeps the share of each application within the settings, or one subscriber could fill the memory of every process,
 * until none can start, make every match look at tens of thousands of sets of names, or have every publication on a
 * channel make more deliveries than there is room for. One that is above them already may become smaller, and stays as
 * it is otherwise (docs/decisions/0079).
 */
@Injectable()
export class SubscriptionAllowance implements OnApplicationBootstrap {
  private readonly most: { subscriptions: number; bytes: number; nameSets: number; unfiltered: number };

  constructor(
    { settings }: Config,
    private readonly catalogue: Catalogue,
    private readonly directory: SubscriptionDirectory,
    private readonly channels: ChannelDirectory,
  ) {
    this.most = {
      subscriptions: settings.SUBSCRIPTIONS_PER_APPLICATION,
      bytes: settings.SUBSCRIPTION_BYTES_PER_APPLICATION,
      nameSets: settings.FILTER_NAME_SETS_PER_APPLICATION,
      unfiltered: settings.UNFILTERED_SUBSCRIPTIONS_PER_APPLICATION,
    };
  }

  onApplicationBootstrap(): void {
    showLargestShare(() => this.largestShare());
  }

  /**
   * The shares as they are before a change of the catalogue. Within it, since no other change can be under way then: of
   * two at once that both would fit alone, the second finds the first one.
   */
  async look(query: Query): Promise<ChangingShares> {
    const rows = await query<Stored>(partsChangedSince, { known: this.catalogue.version });
    return new ChangingShares(this.directory, new Map(rows.map((row) => [row.id, partOf(row)])));
  }

  /**
   * Runs a change of one subscription within one of the catalogue.
   * @param idOf undefined: nothing was changed
   * @throws {ConflictProblem} where its owner would have more than it may
   */
  async within<T>(query: Query, work: () => Promise<T>, idOf: (result: T) => string | undefined): Promise<T> {
    const shares = await this.look(query);
    const result = await work();
    const id = idOf(result);
    if (id === undefined) return result;
    const [stored] = await query<Stored>(partNow, { id });
    shares.replace(id, stored && partOf(stored));
    this.require(shares);
    return result;
  }

  /** @param namesOf of the channels as they will be, where they change too */
  refusals(
    shares: ChangingShares,
    namesOf: NamesOf = (channel) => this.channels.find(channel)?.canonicalFilters,
  ): ShareRefusal[] {
    const { subscriptions, bytes, nameSets, unfiltered } = this.most;
    const refusals: ShareRefusal[] = [];
    for (const { clientId, by, to } of shares.grown()) {
      if (by.subscriptions > 0 && to.subscriptions > subscriptions)
        refusals.push({
          clientId,
          code: 'too-many-subscriptions',
          reason: `The application ${clientId} would have ${to.subscriptions} subscriptions; one may have ${subscriptions} (SUBSCRIPTIONS_PER_APPLICATION).`,
        });
      if (by.bytes > 0 && to.bytes > bytes)
        refusals.push({
          clientId,
          code: 'subscriptions-too-large',
          reason: `The subscriptions of the application ${clientId} would take about ${to.bytes} bytes of the memory of each process; those of one may take ${bytes} (SUBSCRIPTION_BYTES_PER_APPLICATION).`,
        });
    }
    for (const { clientId, channel, by, to } of shares.grownNameSets())
      if (by > 0 && to > nameSets)
        refusals.push({
          clientId,
          code: 'too-many-filter-names',
          reason: `The filters of the subscriptions of the application ${clientId} on the channel ${channel} would have ${to} different sets of names; those of one may have ${nameSets} (FILTER_NAME_SETS_PER_APPLICATION).`,
        });
    for (const { clientId, channel, to } of shares.grownUnfiltered(namesOf))
      if (to > unfiltered)
        refusals.push({
          clientId,
          code: 'too-many-unfiltered',
          reason: `The subscriptions of the application ${clientId} would have ${to} entries that demand no filter of the channel ${channel}; those of one may have ${unfiltered} (UNFILTERED_SUBSCRIPTIONS_PER_APPLICATION).`,
        });
    return refusals;
  }

  private require(shares: ChangingShares): void {
    const [refusal] = this.refusals(shares);
    if (refusal) throw new ConflictProblem(refusal.code, refusal.reason);
  }

  private largestShare(): number {
    let largest = 0;
    for (const share of this.directory.shares.all().values())
      largest = Math.max(largest, share.subscriptions / this.most.subscriptions, share.bytes / this.most.bytes);
    for (const nameSets of this.directory.shares.allNameSets().values())
      for (const counts of nameSets.all().values())
        largest = Math.max(largest, countTogether([counts]) / this.most.nameSets);
    return largest;
  }
}

/** Undefined: it is deleted. */
export const partOf = (stored: Omit<Stored, 'id'>): Part | undefined =>
  stored.deletedAt
    ? undefined
    : { ownerClientId: stored.ownerClientId, bytes: bytesInMemory(stored), channels: stored.channels };

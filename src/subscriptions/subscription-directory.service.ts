import { Injectable, Logger } from '@nestjs/common';
import { Catalogue, type CatalogueDirectory } from '../catalogue/catalogue.service.js';
import { credentialsOf, partsOf, verbatim } from '../credentials/credentials.js';
import { LongWork } from '../infra/long-work.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { SecretCipher, UnreadableSecret } from '../secrets/secret-cipher.service.js';
import { bytesInMemory } from './bytes-in-memory.js';
import { changedSubscriptions, type SubscriptionRow } from './changed-subscriptions.js';
import { ChannelSubscribers } from './channel-subscribers.js';
import { demandsOf, type Demands } from './match-filters.js';
import { alternativesOf } from './name-sets.js';
import { Shares, type Part } from './shares.js';
import { readSigningKeys } from './signing-key-rows.js';
import { authPlace, credentialsPlace, type Subscription, type SubscriptionSecret } from './subscription.js';

export interface ListedSubscription extends Subscription {
  /** Seconds since 1970. */
  readonly createdAt: number;
  /** Of the catalogue, with its last change. */
  readonly version: number;
  /**
   * Of the catalogue, when its rate was set or lowered last, as far as this process has seen that: of one that it has
   * just begun to know, the same as `version`. Undefined: it does not come from memory.
   */
  readonly slowedWith?: number;
}

type Secrets = Pick<Subscription, SubscriptionSecret | 'unreadable' | 'unreadableSecrets'>;

/** The entries of a subscription, and what each of them demands. */
type Entries = Required<Pick<Part, 'channels' | 'demands'>>;

type Known = ListedSubscription & Part & Entries;

/** Every subscription, in memory, and for each channel an index of the subscriptions to match. */
@Injectable()
export class SubscriptionDirectory implements CatalogueDirectory {
  private readonly logger = new Logger(SubscriptionDirectory.name);
  private readonly byId = new Map<string, Known>();
  private readonly byChannel = new Map<string, ChannelSubscribers>();
  private readonly ordered = new Set<string>();
  private readonly restrained = new Set<string>();
  /** Until one of them is another one: a hundred thousand take a while to sort. */
  private sorted: readonly ListedSubscription[] | undefined;
  /** As far as memory knows them. */
  readonly shares = new Shares();

  constructor(
    catalogue: Catalogue,
    private readonly postgres: Postgres,
    private readonly cipher: SecretCipher,
  ) {
    catalogue.register(this);
  }

  find(id: string): ListedSubscription | undefined {
    return this.byId.get(id);
  }

  /** Undefined: memory does not know it. */
  partOf(id: string): Part | undefined {
    return this.byId.get(id);
  }

  /** In the order in which they were created. */
  list(): readonly ListedSubscription[] {
    this.sorted ??= [...this.byId.values()].sort(byCreation);
    return this.sorted;
  }

  /** Every one, in no order that means anything. */
  all(): Iterable<Subscription> {
    return this.byId.values();
  }

  /** The ids of the subscriptions that get a notification of this channel. `characteristics` are by canonical name. */
  match(channel: string, characteristics: ReadonlyMap<string, string>): string[] {
    return this.byChannel.get(channel)?.match(characteristics) ?? [];
  }

  /**
   * The ids of the subscriptions with an entry about this channel, disabled ones included. Looks at every subscription.
   */
  idsAbout(name: string): string[] {
    const about = [...this.byId.values()].filter(({ channels }) => channels.some(({ channel }) => channel === name));
    return about.map(({ id }) => id);
  }

  /** Of these subscriptions, those that keep order by object. */
  keepingOrder(ids: readonly string[]): ReadonlySet<string> {
    if (this.ordered.size === 0) return this.ordered; // nearly always, and on the hot path
    return new Set(ids.filter((id) => this.ordered.has(id)));
  }

  /** Whether any is paused, or has a rate. */
  get isAnyRestrained(): boolean {
    return this.restrained.size > 0;
  }

  async refresh(known: number): Promise<void> {
    const unread = new Set(known === 0 ? this.byId.keys() : []);
    const work = new LongWork();
    for await (const rows of changedSubscriptions(this.postgres, known)) {
      for (const row of rows) {
        unread.delete(row.id);
        if (row.is_deleted) this.forget(row.id);
        else this.keep(row, await this.entriesOf(row, work));
        await work.yieldIfDue();
      }
    }
    for (const id of unread) this.forget(id);
  }

  /**
   * With the demands of before where an entry is the same. To work them out takes long: a subscription may have tens of
   * thousands, and may be changed every second. Meanwhile memory has it as it was.
   */
  private async entriesOf({ id, channels }: SubscriptionRow, work: LongWork): Promise<Entries> {
    const before = this.byId.get(id);
    const demands = Array<Demands>(channels.length); // pushed one by one, it would keep room for sixteen more
    let areSame = before?.channels.length === channels.length;
    for (const [nr, entry] of channels.entries()) {
      const isSame = before && JSON.stringify(before.channels[nr]) === JSON.stringify(entry);
      areSame &&= isSame === true;
      demands[nr] = isSame ? before.demands[nr]! : demandsOf(entry);
      await work.yieldIfDue();
    }
    return areSame ? before! : { channels, demands };
  }

  private keep(row: SubscriptionRow, { channels, demands }: Entries): void {
    const { id, owner_client_id: ownerClientId, callback_url: callbackUrl } = row;
    const bytes = bytesInMemory({ ...row, callbackUrl, signingKeys: row.signing_keys?.length ?? 0 });
    const before = this.byId.get(id);
    this.shares.replace(before, { ownerClientId, bytes, channels, demands });
    this.sorted = undefined;
    this.byId.set(id, {
      id,
      ownerClientId,
      bytes,
      callbackUrl,
      ...this.secretsOf(row),
      channels,
      demands,
      deliveryGuarantee: row.delivery_guarantee,
      disabledAt: row.disabled_at,
      pausedAt: row.paused_at,
      timeoutSeconds: row.timeout_seconds,
      maxConcurrency: row.max_concurrency,
      ratePerSecond: row.rate_per_second,
      ordering: row.ordering,
      alertEmail: row.alert_email,
      createdAt: row.created_at,
      version: Number(row.version),
      slowedWith: slowedWith(row, before),
    });
    put(this.ordered, id, row.ordering === 'per-object');
    put(this.restrained, id, row.paused_at !== null || row.rate_per_second !== null);
    if (demands === before?.demands && !row.disabled_at && !before.disabledAt) return;
    if (before) this.removeFromIndexes(before);
    if (row.disabled_at) return;
    for (const [name, alternatives] of alternativesOf(channels, demands)) {
      const index = this.byChannel.get(name) ?? new ChannelSubscribers();
      this.byChannel.set(name, index);
      index.add(id, alternatives);
    }
  }

  private secretsOf({ id, auth, credentials, signing_keys: signingKeys }: SubscriptionRow): Secrets {
    const reasons = new Map<SubscriptionSecret, string>();
    const read = <T>(secret: SubscriptionSecret, decrypt: () => T, none: T): T => {
      try {
        return decrypt();
      } catch (error) {
        // As a rule encrypted with a key that other processes have: see docs/running.md#secrets. Any other error may
        // quote secrets.
        reasons.set(secret, error instanceof UnreadableSecret ? error.message : 'its credentials cannot be read');
        return none;
      }
    };
    const stored = () => (credentials === null ? null : this.cipher.decrypt(credentials, credentialsPlace(id)));
    const secrets = {
      credentials: read('credentials', () => credentialsOf(partsOf(stored())), verbatim),
      auth: read('auth', () => this.cipher.decrypt(auth, authPlace(id)), ''),
      signingKeys: read('signingKeys', () => readSigningKeys(signingKeys, this.cipher), []),
    };
    const [reason] = reasons.values();
    if (reason === undefined) return { ...secrets, unreadable: null };
    this.logger.error({ event: 'secrets.unreadable', subscriptionId: id, reason });
    return { ...secrets, unreadable: reason, unreadableSecrets: [...reasons.keys()] };
  }

  private forget(id: string): void {
    const known = this.byId.get(id);
    if (!known) return;
    this.shares.remove(known);
    this.sorted = undefined;
    this.removeFromIndexes(known);
    this.byId.delete(id);
    this.ordered.delete(id);
    this.restrained.delete(id);
  }

  private removeFromIndexes({ id, channels }: Known): void {
    for (const { channel } of channels) {
      const index = this.byChannel.get(channel);
      index?.remove(id);
      if (index?.isEmpty) this.byChannel.delete(channel);
    }
  }
}

function put(ids: Set<string>, id: string, isIn: boolean): void {
  if (isIn) ids.add(id);
  else ids.delete(id);
}

/** Never above the row's version, also where the database has gone back and the version of before is to come yet. */
const slowedWith = (row: SubscriptionRow, before: ListedSubscription | undefined): number =>
  before?.slowedWith !== undefined && !isSlower(row, before)
    ? Math.min(before.slowedWith, Number(row.version))
    : Number(row.version);

const isSlower = ({ rate_per_second: rate }: SubscriptionRow, { ratePerSecond: before }: Subscription): boolean =>
  rate !== null && (before === null || rate < before);

/** The oldest first. */
export const byCreation = (
  one: Pick<ListedSubscription, 'createdAt' | 'id'>,
  other: Pick<ListedSubscription, 'createdAt' | 'id'>,
): number => one.createdAt - other.createdAt || (one.id < other.id ? -1 : Number(one.id > other.id));

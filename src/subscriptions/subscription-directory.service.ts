import { Injectable } from '@nestjs/common';
import { Catalogue, type CatalogueDirectory } from '../catalogue/catalogue.service.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { demandsOf, meetsOneOf, type Demands } from './match-filters.js';
import type { DeliveryGuarantee, SubscribedChannel, Subscription } from './subscription.js';

interface SubscriptionRow {
  id: string;
  owner_client_id: string;
  callback_url: string;
  auth: string;
  channels: SubscribedChannel[];
  delivery_guarantee: DeliveryGuarantee | null;
  disabled_at: Date | null;
  is_deleted: boolean;
}

interface Subscriber {
  subscription: Subscription;
  alternatives: Demands[];
}

const changedSince = statement(
  'subscriptions-changed-since',
  `SELECT id, owner_client_id, callback_url, auth, channels, delivery_guarantee,
   disabled_at, deleted_at IS NOT NULL AS is_deleted
   FROM subscription WHERE version > $known ORDER BY created_at, id`,
);

/** Every subscription, in memory, and for each channel the subscriptions to match. */
@Injectable()
export class SubscriptionDirectory implements CatalogueDirectory {
  private readonly byId = new Map<string, Subscription>();
  private readonly byChannel = new Map<string, Map<string, Subscriber>>();

  constructor(
    catalogue: Catalogue,
    private readonly postgres: Postgres,
  ) {
    catalogue.register(this);
  }

  find(id: string): Subscription | undefined {
    return this.byId.get(id);
  }

  /** In the order in which they were created. */
  list(): Subscription[] {
    return [...this.byId.values()];
  }

  /** The subscriptions that get a notification of this channel. `characteristics` are by canonical name. */
  match(channel: string, characteristics: ReadonlyMap<string, string>): Subscription[] {
    const matched: Subscription[] = [];
    for (const { subscription, alternatives } of this.byChannel.get(channel)?.values() ?? []) {
      if (meetsOneOf(alternatives, characteristics)) matched.push(subscription);
    }
    return matched;
  }

  async refresh(known: number): Promise<void> {
    for (const row of await this.postgres.query<SubscriptionRow>(changedSince, { known })) {
      this.forget(row.id, row.is_deleted || row.disabled_at ? [] : row.channels);
      if (row.is_deleted) this.byId.delete(row.id);
      else this.keep(row);
    }
  }

  private keep(row: SubscriptionRow): void {
    const { id, owner_client_id: ownerClientId, callback_url: callbackUrl, auth, channels } = row;
    const { delivery_guarantee: deliveryGuarantee, disabled_at: disabledAt } = row;
    const subscription = { id, ownerClientId, callbackUrl, auth, channels, deliveryGuarantee, disabledAt };
    this.byId.set(id, subscription);
    if (disabledAt) return;
    for (const name of new Set(channels.map(({ channel }) => channel))) {
      const alternatives = channels.filter(({ channel }) => channel === name).map(demandsOf);
      const subscribers = this.byChannel.get(name) ?? new Map<string, Subscriber>();
      this.byChannel.set(name, subscribers.set(id, { subscription, alternatives }));
    }
  }

  /** Removes a subscription from the channels it is no longer about. */
  private forget(id: string, remaining: SubscribedChannel[]): void {
    for (const { channel } of this.byId.get(id)?.channels ?? []) {
      if (!remaining.some((entry) => entry.channel === channel)) this.byChannel.get(channel)?.delete(id);
    }
  }
}

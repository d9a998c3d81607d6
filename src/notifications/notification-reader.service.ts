import { Injectable } from '@nestjs/common';
import type { Criteria } from '../deliveries/criteria.js';
import { DeliveryReader, type KnownAttempt, type KnownDelivery } from '../deliveries/delivery-reader.service.js';
import { LedgerSearch, type SearchBounds } from '../deliveries/search.service.js';
import { endpointsOf } from '../endpoints/origin.js';
import { Postgres } from '../infra/postgres/postgres.js';
import type { DeliveryKey, DeliveryState } from '../ledger/delivery.js';
import { lowestId } from '../ledger/partitions.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import { stateOf, type SubscriptionState } from '../subscriptions/subscription-state.js';
import { findActions, type Subject } from './find-actions.js';
import * as statements from './find-notifications.js';
import { storyOf, type StoryEvent, type StoryOfDelivery, type WorkOnMany } from './story.js';

export interface KnownNotification {
  id: string;
  channel: string;
  publisher: string;
  /** The publisher's. */
  key: string | null;
  notBefore: Date | null;
  acceptedAt: Date;
}

export interface ListedNotification extends KnownNotification {
  /** Null: its body was erased, or is too large for a list. So are the next four. */
  mainObject: string | null;
  resource: string | null;
  resourceUrl: string | null;
  action: string | null;
  characteristics: Record<string, string> | null;
  /** How many of its first `mostListed` deliveries are in each state. */
  deliveries: Partial<Record<DeliveryState, number>>;
}

export interface NotificationPage {
  notifications: ListedNotification[];
  /** Id after which the list goes on; undefined at its end. */
  next: string | undefined;
  searchedTo: Date | undefined;
}

export interface ShownDelivery {
  delivery: KnownDelivery;
  /** The latest of them. */
  attempts: KnownAttempt[];
  /** Null: there is no such subscription. One that was deleted lately is there, and says so. */
  subscription: { owner: string; callbackUrl: string; state: SubscriptionState } | null;
}

/** All that is known of one notification, with some of its deliveries. */
export interface WholeNotification extends KnownNotification {
  /** Null: it was erased. */
  body: string | null;
  duplicates: { publisher: string; key: string }[];
  deliveryCount: { count: number; isExact: boolean };
  deliveries: ShownDelivery[];
  /** Where the deliveries go on, also where the page is short; undefined at their end. */
  next: DeliveryKey | undefined;
  story: StoryEvent[];
}

interface NotificationRow {
  id: string;
  channel: string;
  publisher: string;
  request_key: string | null;
  not_before: Date | null;
  accepted_at: Date;
}

const mostCounted = 10_000;
const mostDuplicates = 100;
/** Of each delivery; `GET /admin/v1/deliveries/…` has all of them. */
const mostAttempts = 20;
/** Of what receivers answered, as it was kept of these attempts. */
const mostBytes = 4 * 1024 * 1024;

/** Reads the ledger for people. */
@Injectable()
export class NotificationReader {
  constructor(
    private readonly postgres: Postgres,
    private readonly search: LedgerSearch,
    private readonly deliveries: DeliveryReader,
    private readonly directory: SubscriptionDirectory,
  ) {}

  /** @param after id; where the list goes on */
  async list(
    criteria: Criteria,
    after: string | undefined,
    limit: number,
    bounds?: SearchBounds,
  ): Promise<NotificationPage> {
    const key = after === undefined ? undefined : { notificationId: after, subscriptionId: lowestId };
    const { keys, next, searchedTo } = await this.search.find('notification', criteria, key, limit, bounds);
    const ids = keys.map(({ notificationId }) => notificationId);
    const rows = await this.postgres.queryAside<NotificationRow & ContentRow>(statements.notificationsOfList, { ids });
    const notifications = rows.map((row) => ({
      ...toNotification(row),
      mainObject: row.main_object,
      resource: row.resource,
      resourceUrl: row.resource_url,
      action: row.action,
      characteristics: row.characteristics,
      deliveries: row.deliveries,
    }));
    return { notifications, next: next?.notificationId, searchedTo };
  }

  async find(id: string, after: DeliveryKey | undefined, limit: number): Promise<WholeNotification | undefined> {
    const [row] = await this.postgres.queryAside<NotificationRow & { body: string | null }>(
      statements.oneNotification,
      { id },
    );
    if (!row) return undefined;
    const [page, counted, duplicates] = await Promise.all([
      this.page(id, after, limit),
      this.postgres.queryAside<{ count: number }>(statements.countDeliveries, { id, most: mostCounted + 1 }),
      this.postgres.queryAside<{ application: string; key: string }>(statements.duplicatesOf, {
        id,
        most: mostDuplicates,
      }),
    ]);
    const notification = toNotification(row);
    const deliveryCount = {
      count: Math.min(counted[0]!.count, mostCounted),
      isExact: counted[0]!.count <= mostCounted,
    };
    const shown = await this.shown(page.deliveries);
    const told = await this.told(shown, notification.acceptedAt);
    return {
      ...notification,
      body: row.body,
      duplicates: duplicates.map(({ application, key }) => ({ publisher: application, key })),
      deliveryCount,
      deliveries: shown,
      next: page.next,
      story: storyOf({ ...notification, deliveryCount: deliveryCount.count }, told),
    };
  }

  /** Ends behind the delivery with whose attempts it is full. */
  private async page(id: string, after: DeliveryKey | undefined, limit: number) {
    const { deliveries, next } = await this.deliveries.list({ notificationId: id }, after, limit);
    const fitting = await this.deliveries.countUntilFull(deliveries, mostAttempts, mostBytes);
    if (fitting === deliveries.length) return { deliveries, next };
    const { notificationId, subscriptionId } = deliveries[fitting - 1]!;
    return { deliveries: deliveries.slice(0, fitting), next: { notificationId, subscriptionId } };
  }

  private async shown(deliveries: readonly KnownDelivery[]): Promise<ShownDelivery[]> {
    const ids = deliveries.map(({ subscriptionId }) => subscriptionId);
    const [attempts, rows] = await Promise.all([
      this.deliveries.attemptsOfEach(deliveries, mostAttempts),
      this.postgres.queryAside<SubscriptionRow>(statements.subscriptionsOf, { ids }),
    ]);
    const attemptsOf = groupedBy(attempts, ({ key }) => key.subscriptionId);
    const subscriptions = new Map(
      rows.map((row) => {
        const state = stateOf(row.is_deleted ? undefined : { disabledAt: row.disabled_at, pausedAt: row.paused_at });
        return [row.id, { owner: row.owner_client_id, callbackUrl: row.callback_url, state }];
      }),
    );
    return deliveries.map((delivery) => ({
      delivery,
      attempts: (attemptsOf.get(delivery.subscriptionId) ?? []).map(({ attempt }) => attempt),
      subscription: subscriptions.get(delivery.subscriptionId) ?? null,
    }));
  }

  /** The sources of the story of each delivery. */
  private async told(shown: readonly ShownDelivery[], since: Date): Promise<StoryOfDelivery[]> {
    const addresses = shown.map(({ delivery: { subscriptionId }, subscription }) => {
      // Its TLS identity is in memory alone, which may not know it yet.
      const callback = this.directory.find(subscriptionId) ?? (subscription && { ...subscription, credentials: {} });
      return callback ? endpointsOf(callback) : [];
    });
    const subjects = shown.map(({ delivery }, nr): [Subject, Subject, ...Subject[]] => [
      { name: `delivery/${delivery.notificationId}/${delivery.subscriptionId}`, until: null },
      { name: `subscription/${delivery.subscriptionId}`, until: delivery.endedAt },
      ...addresses[nr]!.map((address) => ({ name: `endpoint/${address}`, until: delivery.endedAt })),
    ]);
    const replayIds = shown.flatMap(({ delivery }) => delivery.replayId ?? []);
    const [actions, open, work] = await Promise.all([
      findActions(this.postgres, eachOnce(subjects.flat()), since),
      this.postgres.queryAside<EndpointRow>(statements.endpointsAt, { addresses: [...new Set(addresses.flat())] }),
      this.postgres.queryAside<WorkRow>(statements.workOn, { ids: [...new Set(replayIds)] }),
    ]);
    const [openAt, workOf] = [
      new Map(open.map((row) => [row.address, row])),
      new Map(work.map((row) => [row.id, row])),
    ];
    return shown.map(({ delivery, attempts }, nr) => ({
      delivery,
      attempts,
      actions: subjects[nr]!.flatMap(({ name }) => actions.of.get(name) ?? []),
      cut: {
        delivery: actions.cut.has(subjects[nr]![0].name),
        subscription: actions.cut.has(subjects[nr]![1].name),
      },
      openEndpoints: addresses[nr]!.flatMap((address) => openAt.get(address) ?? []).map((row) => ({
        address: row.address,
        openedAt: row.opened_at,
        reason: row.reason,
        nextProbeAt: row.next_probe_at,
      })),
      work: toWork(delivery.replayId === null ? undefined : workOf.get(delivery.replayId)),
    }));
  }
}

interface ContentRow {
  main_object: string | null;
  resource: string | null;
  resource_url: string | null;
  action: string | null;
  characteristics: Record<string, string> | null;
  deliveries: Partial<Record<DeliveryState, number>>;
}

interface SubscriptionRow {
  id: string;
  owner_client_id: string;
  callback_url: string;
  disabled_at: Date | null;
  paused_at: Date | null;
  is_deleted: boolean;
}

interface WorkRow {
  id: string;
  kind: 'replay' | 'cancel' | 'close';
  note: string | null;
  created_by: string | null;
}

const toWork = (row: WorkRow | undefined): WorkOnMany | null =>
  row ? { id: row.id, kind: row.kind, note: row.note, client: row.created_by } : null;

interface EndpointRow {
  address: string;
  opened_at: Date;
  reason: string;
  next_probe_at: Date;
}

const toNotification = (row: NotificationRow): KnownNotification => ({
  id: row.id,
  channel: row.channel,
  publisher: row.publisher,
  key: row.request_key,
  notBefore: row.not_before,
  acceptedAt: row.accepted_at,
});

/** Several deliveries may have one endpoint: then the last of them to end says how late its entries are looked at. */
function eachOnce(subjects: readonly Subject[]): Subject[] {
  const last = new Map<string, Subject>();
  for (const subject of subjects) {
    const until = last.get(subject.name)?.until;
    const isLater = until === undefined || subject.until === null || (until !== null && subject.until > until);
    if (isLater) last.set(subject.name, subject);
  }
  return [...last.values()];
}

function groupedBy<Item>(items: readonly Item[], nameOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(nameOf(item));
    if (group) group.push(item);
    else groups.set(nameOf(item), [item]);
  }
  return groups;
}

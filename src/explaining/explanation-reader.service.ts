import { Injectable } from '@nestjs/common';
import { OpenEndpoints } from '../endpoints/open-endpoints.service.js';
import { Postgres } from '../infra/postgres/postgres.js';
import type { Statement, Values } from '../infra/postgres/statement.js';
import type { DeliveryState, HeldReason } from '../ledger/delivery.js';
import type { OpenEndpoint } from '../ledger/open-endpoints.js';
import { highestId, lowestId } from '../ledger/partitions.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { characteristicsOf } from '../publishing/characteristics-of.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { SubscribedChannel } from '../subscriptions/subscription.js';
import type { ExplanationKey } from './explanation-cursor.js';
import * as statements from './find-explained.js';
import { judgeThen, slackMs, type Judgement, type Matchable } from './judge.js';
import type { PastChange } from './past-version.js';
import { describeSituation, type LedgerDelivery } from './situation.js';

/** How sure it is that a subscription was judged as it was when the notification was accepted. */
export interface Basis {
  catalogue: 'as-of-acceptance' | 'as-far-as-known';
  reason: string;
}

/** Why a subscription got a notification, or did not, and where its delivery is. */
export interface Explanation {
  subscriptionId: string;
  ownerClientId: string;
  callbackUrl: string;
  judgement: Judgement;
  basis: Basis;
  delivery: LedgerDelivery | undefined;
  /** Of its delivery. */
  situation: string | undefined;
  /** That its delivery is held for. */
  endpoint: OpenEndpoint | undefined;
}

export interface ExplanationPage {
  explanations: Explanation[];
  /** Where the list goes on; undefined at its end. */
  next: ExplanationKey | undefined;
}

interface Explained {
  explanations: Explanation[];
  /** The subscription after which no other one fitted in the page; undefined: they all did. */
  fullAfter: string | undefined;
}

interface Notification extends Matchable {
  id: string;
  acceptedAt: Date;
  notBefore: Date | null;
}

/** Reads the ledger and the audit log for people. */
@Injectable()
export class ExplanationReader {
  constructor(
    private readonly postgres: Postgres,
    private readonly openEndpoints: OpenEndpoints,
    private readonly directory: SubscriptionDirectory,
    private readonly ledgerClock: LedgerClock,
  ) {}

  async findNotification(id: string): Promise<Notification | undefined> {
    const [row] = await this.postgres.queryAside<NotificationRow>(statements.notification, { id });
    if (!row) return undefined;
    const { channel, body, not_before: notBefore, accepted_at: acceptedAt } = row;
    return { id, channel, notBefore, acceptedAt, characteristics: characteristicsOf(body) };
  }

  /** @returns undefined: there is no such subscription, and never was */
  async explain(notification: Notification, subscriptionId: string): Promise<Explanation | undefined> {
    const deliveries = await this.postgres.queryAside<DeliveryRow>(statements.deliveryOf, {
      id: notification.id,
      subscription: subscriptionId,
    });
    return (await this.combine(notification, [subscriptionId], deliveries))[0];
  }

  /** @returns undefined: as of `explain` */
  async only(notification: Notification, subscriptionId: string): Promise<ExplanationPage | undefined> {
    const explanation = await this.explain(notification, subscriptionId);
    return explanation && { explanations: [explanation], next: undefined };
  }

  /**
   * First every subscription that has a delivery, then those that are or were about the channel, each in the order of
   * their ids. A page may be short, or empty, although `next` says that the list goes on: then a limited range was
   * searched, or its subscriptions are large.
   * @param rangeRows subscriptions that one call searches
   */
  async list(
    notification: Notification,
    { part, after }: ExplanationKey,
    limit: number,
    rangeRows = 2000,
  ): Promise<ExplanationPage> {
    const first = part === 'first' ? await this.deliveries(notification, after, limit + 1) : [];
    if (first.length > limit) {
      const page = first.slice(0, limit);
      const { explanations, fullAfter } = await this.explainDeliveries(notification, page);
      return { explanations, next: { part: 'first', after: fullAfter ?? page.at(-1)!.subscription_id } };
    }
    const { explanations, fullAfter } = await this.explainDeliveries(notification, first);
    if (fullAfter !== undefined) return { explanations, next: { part: 'first', after: fullAfter } };
    const rest = await this.listOthers(notification, part === 'others' ? after : null, limit - first.length, rangeRows);
    return { explanations: [...explanations, ...rest.explanations], next: rest.next };
  }

  private async listOthers(
    notification: Notification,
    after: string | null,
    limit: number,
    rangeRows: number,
  ): Promise<ExplanationPage> {
    if (limit === 0) return { explanations: [], next: { part: 'others', after } };
    const from = after ?? lowestId;
    const since = sinceOf(notification);
    const end = await this.lastToRead(statements.lastInRange, { after: from, rows: rangeRows, since });
    const others = await this.postgres.queryAside<{ id: string }>(statements.others, {
      id: notification.id,
      channel: notification.channel,
      after: from,
      last: end ?? highestId,
      since,
      limit: limit + 1,
    });
    const ids = others.slice(0, limit).map(({ id }) => id);
    const last = others.length > limit ? ids.at(-1) : end;
    const explanations = await this.combine(notification, ids, []);
    return {
      // Of those deleted in the second before, nobody wants to know.
      explanations: explanations.filter(({ judgement }) => judgement.verdict !== 'deleted-before'),
      next: last === undefined ? undefined : { part: 'others', after: last },
    };
  }

  private deliveries({ id }: Notification, after: string | null, limit: number): Promise<DeliveryRow[]> {
    return this.postgres.queryAside<DeliveryRow>(statements.deliveries, { id, after: after ?? lowestId, limit });
  }

  private async explainDeliveries(notification: Notification, deliveries: DeliveryRow[]): Promise<Explained> {
    if (deliveries.length === 0) return { explanations: [], fullAfter: undefined };
    const ids = deliveries.map((row) => row.subscription_id);
    const since = sinceOf(notification);
    const last = await this.lastToRead(statements.lastOfThese, { ids, rows: ids.length, since });
    const read = last === undefined ? ids : ids.slice(0, ids.indexOf(last) + 1);
    return { explanations: await this.combine(notification, read, deliveries), fullAfter: last };
  }

  /** @returns undefined: all of them can be read */
  private async lastToRead(which: Statement, values: Values): Promise<string | undefined> {
    return (await this.postgres.queryAside<{ id: string }>(which, values))[0]?.id;
  }

  private async combine(
    notification: Notification,
    ids: readonly string[],
    deliveries: readonly DeliveryRow[],
  ): Promise<Explanation[]> {
    const subscriptions = await this.postgres.queryAside<SubscriptionRow>(statements.subscriptions, {
      ids,
      since: sinceOf(notification),
    });
    const [first] = await this.postgres.queryAside<{ at: Date }>(statements.firstEntry);
    if (deliveries.some((row) => row.held_for === 'endpoint-parked')) await this.openEndpoints.refresh();
    const bySubscription = new Map(deliveries.map((row) => [row.subscription_id, row]));
    const now = this.ledgerClock.now();
    return subscriptions.map((row) => {
      const delivery = bySubscription.get(row.id);
      const known = delivery && toDelivery(delivery);
      // Its TLS identity is in memory alone, which may not know it yet.
      const callback = this.directory.find(row.id) ?? { callbackUrl: row.callback_url, credentials: {} };
      const endpoint = known?.heldFor === 'endpoint-parked' ? this.openEndpoints.of(callback) : undefined;
      const { notBefore } = notification;
      return {
        subscriptionId: row.id,
        ownerClientId: row.owner_client_id,
        callbackUrl: row.callback_url,
        judgement: judgeThen(toPast(row), notification, matchingOf(notification, now), delivery !== undefined),
        basis: basisOf(row, notification, first?.at),
        delivery: known,
        situation: known && describeSituation(known, { endpoint, pausedAt: row.paused_at, notBefore, now }),
        endpoint,
      };
    });
  }
}

/** From when on changes decide what a subscription was when the notification was matched. */
const sinceOf = ({ acceptedAt }: Notification): Date => new Date(acceptedAt.getTime() - slackMs);

const matchingOf = ({ acceptedAt, notBefore }: Notification, now: number) => ({
  acceptedAt: acceptedAt.getTime(),
  replaceableUntil: notBefore && Math.min(notBefore.getTime(), now),
});

function basisOf(row: SubscriptionRow, { acceptedAt }: Notification, firstEntry: Date | undefined): Basis {
  const then = (reason: string): Basis => ({ catalogue: 'as-of-acceptance', reason });
  const perhaps = (reason: string): Basis => ({ catalogue: 'as-far-as-known', reason });
  if (row.is_cut) {
    const many = `${statements.mostChanges} changes or more were noted since; only the first ones were looked at.`;
    return perhaps(many);
  }
  if (row.is_large)
    return perhaps('The changes noted since are too large to read all of them; only the first ones were looked at.');
  if (!firstEntry || firstEntry > acceptedAt) {
    const start = firstEntry ? `begins at ${firstEntry.toISOString()}` : 'is empty';
    return perhaps(`The audit log ${start}; what was changed before that, but after the acceptance, is not known.`);
  }
  const wasThereBefore = row.changes?.some(({ at, done }) => done === 'deleted' && at < row.created_at.getTime());
  if (row.created_at > acceptedAt && !wasThereBefore)
    return then(`The subscription was made at ${row.created_at.toISOString()}.`);
  return then('The audit log has every change since.');
}

interface NotificationRow {
  channel: string;
  body: string | null;
  not_before: Date | null;
  accepted_at: Date;
}

interface SubscriptionRow {
  id: string;
  owner_client_id: string;
  callback_url: string;
  channels: SubscribedChannel[];
  disabled_at: Date | null;
  paused_at: Date | null;
  created_at: Date;
  deleted_at: Date | null;
  changes: PastChange[] | null;
  is_cut: boolean;
  /** Whether the last of them were too large. */
  is_large: boolean;
}

interface DeliveryRow {
  subscription_id: string;
  state: DeliveryState;
  held_for: HeldReason | null;
  held_since: Date | null;
  next_at: Date | null;
  queued_at: Date | null;
  attempts: number;
  failures: number;
  replays: number;
  expires_at: Date | null;
  last_status: number | null;
  last_error: string | null;
  ended_at: Date | null;
  turn_of: string | null;
  ahead: number;
}

const toPast = (row: SubscriptionRow) => ({
  channels: row.channels,
  disabledAt: row.disabled_at?.toISOString() ?? null,
  createdAt: row.created_at.getTime(),
  deletedAt: row.deleted_at?.getTime() ?? null,
  changes: row.changes ?? [],
});

const toDelivery = (row: DeliveryRow): LedgerDelivery => ({
  state: row.state,
  // While it is on its way after its release, the ledger still has the reason.
  heldFor: row.state === 'held' ? row.held_for : null,
  heldSince: row.held_since,
  nextAt: row.next_at,
  queuedAt: row.queued_at,
  attempts: row.attempts,
  failures: row.failures,
  replays: row.replays,
  expiresAt: row.expires_at,
  lastStatus: row.last_status,
  lastError: row.last_error,
  endedAt: row.ended_at,
  turnOf: row.turn_of,
  ahead: row.ahead,
});

import { Injectable } from '@nestjs/common';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { HoldRule } from '../endpoints/hold-rule.service.js';
import { OpenEndpoints } from '../endpoints/open-endpoints.service.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import { Postgres } from '../infra/postgres/postgres.js';
import type { HeldReason } from '../ledger/delivery.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { objectKeyOf } from '../publishing/in-order.js';
import { PublicationReader } from '../publishing/publication-reader.service.js';
import type { ParsedNotification } from '../publishing/parse-notification.js';
import { termsOf } from '../publishing/terms.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { Subscription } from '../subscriptions/subscription.js';
import type { ExplanationKey } from './explanation-cursor.js';
import * as statements from './find-explained.js';
import { judge, type Judgement } from './judge.js';

/** The fates that a delivery may have. */
export const fates = ['sent', 'held', 'in-line', 'expired', 'duplicate', 'none'] as const;
export type Fate = (typeof fates)[number];

/** The outcome for one subscription of a notification that was not sent. */
export interface Forecast {
  subscription: Subscription;
  judgement: Judgement;
  fate: Fate;
  heldFor: HeldReason | null;
  /** In line: the notification about the same object whose delivery has the turn. */
  behind: string | null;
}

export interface DryRun {
  notification: ParsedNotification;
  /** Of the subscriptions, counted in memory. */
  matched: number;
  subscribed: number;
  /** The notification that the channel's rule finds equal to it; null: it would be the first. */
  duplicateOf: string | null;
  /** It is older than its channel allows. */
  isTooOld: boolean;
  forecasts: Forecast[];
  /** Where the list goes on; undefined at its end. */
  next: ExplanationKey | undefined;
}

/** The part of a dry run that one call wants to see. */
export interface DryRunPage {
  /** Only this one. */
  subscriptionId: string | undefined;
  from: ExplanationKey;
  limit: number;
}

/** Says what would become of a notification: read and matched as a published one is, and then left alone. */
@Injectable()
export class DryRunService {
  constructor(
    private readonly reader: PublicationReader,
    private readonly catalogue: Catalogue,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly holdRule: HoldRule,
    private readonly openEndpoints: OpenEndpoints,
    private readonly ledgerClock: LedgerClock,
    private readonly postgres: Postgres,
  ) {}

  /**
   * Those that would get it come first, then the others that are about its channel, each in the order of their ids.
   * @throws {ValidationProblem} as publishing does
   */
  async run(raw: JsonObject, { subscriptionId, from, limit }: DryRunPage): Promise<DryRun> {
    await Promise.all([this.catalogue.refresh(), this.openEndpoints.refresh()]);
    const notification = await this.reader.read(raw);
    const { channel, characteristics } = notification;
    const matched = new Set(this.subscriptions.match(channel.name, characteristics));
    const others = this.subscriptions.idsAbout(channel.name).filter((id) => !matched.has(id));
    const { content, expiresAt } = termsOf(notification, { request: null, notBefore: null });
    const [first] = content
      ? await this.postgres.queryAside<{ result_id: string }>(statements.firstOfContent, { ...content })
      : [];
    const about: About = {
      notification,
      matched,
      duplicateOf: first?.result_id ?? null,
      isTooOld: expiresAt !== null && expiresAt <= this.ledgerClock.now(),
    };
    const page =
      subscriptionId === undefined
        ? pageOf({ first: [...matched].toSorted(), others: others.toSorted() }, from, limit)
        : { ids: [subscriptionId], next: undefined };
    return {
      ...about,
      matched: matched.size,
      subscribed: matched.size + others.length,
      forecasts: await this.forecast(about, page.ids),
      next: page.next,
    };
  }

  private async forecast(about: About, ids: readonly string[]): Promise<Forecast[]> {
    const found = ids.map((id) => this.subscriptions.find(id)).filter((one) => one !== undefined);
    const turns = await this.turns(about, found);
    return found.map((subscription) => {
      const judgement = judge(
        {
          existence: 'present',
          channels: subscription.channels,
          disabledAt: subscription.disabledAt?.toISOString() ?? null,
        },
        { channel: about.notification.channel.name, characteristics: about.notification.characteristics },
      );
      return { subscription, judgement, ...this.fateOf(about, subscription, turns.get(subscription.id)) };
    });
  }

  private fateOf(
    { matched, duplicateOf, isTooOld }: About,
    subscription: Subscription,
    behind: string | undefined,
  ): Pick<Forecast, 'fate' | 'heldFor' | 'behind'> {
    const nothing = { heldFor: null, behind: null };
    if (!matched.has(subscription.id)) return { fate: 'none', ...nothing };
    if (duplicateOf !== null) return { fate: 'duplicate', ...nothing };
    if (isTooOld) return { fate: 'expired', ...nothing };
    if (behind !== undefined) return { fate: 'in-line', heldFor: 'order', behind };
    const heldFor = this.holdRule.onAcceptance(subscription) ?? null;
    return { fate: heldFor ? 'held' : 'sent', heldFor, behind: null };
  }

  private async turns(
    { notification, matched }: About,
    subscriptions: readonly Subscription[],
  ): Promise<ReadonlyMap<string, string>> {
    const ids = subscriptions.filter(({ id, ordering }) => matched.has(id) && ordering !== 'none').map(({ id }) => id);
    if (ids.length === 0) return new Map();
    const rows = await this.postgres.queryAside<{ subscription_id: string; notification_id: string }>(
      statements.turns,
      {
        ids,
        object_key: objectKeyOf(notification.hoofdObject),
      },
    );
    return new Map(rows.map((row) => [row.subscription_id, row.notification_id]));
  }
}

interface About extends Pick<DryRun, 'notification' | 'duplicateOf' | 'isTooOld'> {
  matched: ReadonlySet<string>;
}

/** @param parts ids in their order */
function pageOf(
  parts: Record<ExplanationKey['part'], readonly string[]>,
  { part, after }: ExplanationKey,
  limit: number,
): { ids: string[]; next: ExplanationKey | undefined } {
  const following = (ids: readonly string[]) => (after === null ? [...ids] : ids.filter((id) => id > after));
  const first = part === 'first' ? following(parts.first) : [];
  if (first.length > limit) return { ids: first.slice(0, limit), next: { part, after: first[limit - 1]! } };
  const others = part === 'first' ? [...parts.others] : following(parts.others);
  const room = limit - first.length;
  const ids = [...first, ...others.slice(0, room)];
  if (others.length <= room) return { ids, next: undefined };
  return { ids, next: { part: 'others', after: room === 0 ? null : others[room - 1]! } };
}

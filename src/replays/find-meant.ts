import type { Query } from '../infra/postgres/postgres.js';
import type { LedgerDay } from '../ledger/days.js';
import { dayOfId, lowestId } from '../ledger/partitions.js';
import type { DeliveryKey } from '../ledger/delivery.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { matcherOf, objectKeyFor } from './missed-notifications.js';
import type { Meant } from './replay.js';
import {
  bindSearch,
  findMeant,
  findNotifications,
  findsOnlyMeant,
  keepScheduled,
  routeFor,
  type Bounds,
  type FoundRow,
  type NotificationRow,
} from './search.js';

/** A delivery that is meant. */
export interface Found extends DeliveryKey {
  /** There is no such delivery: its subscription would have got it. */
  isNew: boolean;
  /** Of a new one whose subscription keeps order. */
  objectKey: string | null;
  /** The text that it would send is no longer there. */
  isErased: boolean;
}

export interface Finding {
  /** In the order in which they are to be sent. */
  found: Found[];
  /** Rows that were looked at. */
  walked: number;
  /** Up to here it has been searched; undefined: to the end of the day. */
  reached: DeliveryKey | undefined;
}

export interface FindingMissed extends Finding {
  /** Of the rows, those whose bodies were read. */
  withBody: number;
}

/** The days that may have deliveries between the bounds. */
export const daysWithin = (
  days: readonly LedgerDay[],
  { after, before }: Pick<Bounds, 'after' | 'before'>,
): LedgerDay[] => days.filter(({ day }) => day >= dayOfId(after.notificationId) && day <= dayOfId(before));

/** Searches a day of the ledger for deliveries that are meant. The limit is a number. */
export async function findOnDay(query: Query, day: number, meant: Meant, within: Bounds): Promise<Finding> {
  const { scan, limit } = within;
  const bounds = findsOnlyMeant(meant) ? { ...within, scan: Math.min(scan, limit ?? scan) } : within;
  const rows = await query<FoundRow>(findMeant[routeFor(meant)](day), bindSearch(meant, bounds));
  const found = rows.flatMap((row) =>
    row.notification_id === null
      ? []
      : {
          notificationId: row.notification_id,
          subscriptionId: row.subscription_id!,
          isNew: false,
          objectKey: null,
          isErased: row.is_erased!,
        },
  );
  const { walked, last_notification: lastId, last_subscription: lastSubscription } = rows[0]!;
  const last = { notificationId: lastId!, subscriptionId: lastSubscription! };
  return { found, walked, reached: reachedBy(found, bounds, walked < bounds.scan, last) };
}

/**
 * The same for all that the subscription would have got, to be sent in this transaction. First little more is looked at
 * than may be found, since each notification has its body read for it; where few are meant, twice as much each time.
 * Where bodies are large it ends early, as `findMissedOnDay` does.
 */
export async function findMissedToSend(
  query: Query,
  day: number,
  meant: Meant,
  subscription: Subscription,
  bounds: Bounds & { limit: number },
): Promise<Finding> {
  const found: Found[] = [];
  let walked = 0;
  let { after } = bounds;
  for (let next = 2 * bounds.limit + 50; ; next *= 2) {
    const scan = Math.min(next, bounds.scan - walked);
    const part = { ...bounds, after, scan, limit: bounds.limit - found.length };
    await keepContents(query, day, part);
    const finding = await findMissedOnDay(query, day, meant, subscription, part);
    found.push(...finding.found);
    walked += finding.walked;
    const { reached } = finding;
    const isEnough = found.length === bounds.limit || finding.walked < scan || walked === bounds.scan;
    if (!reached || isEnough) return { found, walked, reached };
    after = reached;
  }
}

/** One look: to be counted, or a part of what is sent. */
export async function findMissedOnDay(
  query: Query,
  day: number,
  { selection, states }: Meant,
  subscription: Subscription,
  bounds: Bounds,
): Promise<FindingMissed> {
  const channels = subscription.channels.map(({ channel }) => channel);
  const rows = await query<NotificationRow>(findNotifications(day), {
    channels: selection.channels ? channels.filter((channel) => selection.channels!.includes(channel)) : channels,
    subscription: subscription.id,
    after_notification: bounds.after.notificationId,
    before: bounds.before,
    scan: bounds.scan,
  });
  const matches = matcherOf(subscription);
  const found: Found[] = [];
  for (const row of rows) {
    const { notification_id: notificationId, channel, characteristics, main_object: mainObject, state } = row;
    if (notificationId === null || found.length === bounds.limit) break;
    if (state !== null && !states.includes(state)) continue;
    const isNew = state === null;
    // Of one that is erased nobody can tell whether it fits. A delivery of it is counted, and passed over.
    if (row.is_erased ? isNew : !matches({ channel, characteristics: characteristics ?? {} })) continue;
    const objectKey = isNew && mainObject !== null ? objectKeyFor(subscription, mainObject) : null;
    found.push({ notificationId, subscriptionId: subscription.id, isNew, objectKey, isErased: row.is_erased });
  }
  const { walked, is_end: isEnd, last_notification: lastId } = rows[0]!;
  const last = { notificationId: lastId!, subscriptionId: lowestId };
  const withBody = rows.filter((row) => row.notification_id !== null && !row.is_erased).length;
  return { found, walked, reached: reachedBy(found, bounds, isEnd, last), withBody };
}

/** Of the notifications that `findMissedOnDay` will look at: what is sent is as it was found. */
async function keepContents(query: Query, day: number, { after, before, scan }: Bounds): Promise<void> {
  await query(keepScheduled(day), { after_notification: after.notificationId, before, scan });
}

/** Where more were found than it may take, the search goes on behind the last of those. */
function reachedBy(
  found: readonly Found[],
  { limit }: Bounds,
  isEnd: boolean,
  last: DeliveryKey,
): DeliveryKey | undefined {
  if (found.length === limit) {
    const { notificationId, subscriptionId } = found.at(-1)!;
    return { notificationId, subscriptionId };
  }
  return isEnd ? undefined : last;
}

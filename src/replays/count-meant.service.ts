import { Injectable } from '@nestjs/common';
import { Postgres, type Query } from '../infra/postgres/postgres.js';
import { readAside } from '../infra/postgres/read-aside.js';
import { readDays } from '../ledger/days.js';
import type { DeliveryKey } from '../ledger/delivery.js';
import { dayMs, lowestId, lowestIdAt, timeOfId } from '../ledger/partitions.js';
import { onDay } from '../ledger/per-day.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { daysWithin, findMissedOnDay, type Finding } from './find-meant.js';
import type { Meant } from './replay.js';
import { bindSearch, countMeant, countMeantOfChannels, routeFor, type Bounds, type CountedRow } from './search.js';

/**
 * How much of the ledger one count looks at: rows, so that the next count comes to the same; and milliseconds, in case
 * they are slow.
 */
interface CountLimits {
  deliveries: number;
  notifications: number;
  ms: number;
}
const usual: CountLimits = { deliveries: 2_000_000, notifications: 200_000, ms: 4000 };

/** Rows of one statement. */
const together = { deliveries: 50_000, notifications: 5000 };
/** So many notifications whose bodies are not read, because they are erased or of another channel, count as one. */
const withoutBody = 10;
const sampleLength = 20;

export interface Range {
  after: DeliveryKey;
  before: string;
}

export interface Counted {
  count: number;
  /** How many notifications these deliveries are of. */
  notifications: number;
  bySubscription: Map<string, number>;
  /** The oldest of them. */
  sample: DeliveryKey[];
  /** Milliseconds since 1970 of the notification up to which it looked; undefined: it looked at everything. */
  searchedTo: number | undefined;
}

/**
 * Counts what a selection means, without a change of anything. Through TypeORM's pool, so that it uses no connection of
 * the hot path.
 */
@Injectable()
export class MeantCounter {
  constructor(private readonly postgres: Postgres) {}

  /** @param subscription of `everythingFor` */
  async count(
    meant: Meant,
    { after, before }: Range,
    subscription: Subscription | undefined,
    limits = usual,
  ): Promise<Counted> {
    const counted: Counted = {
      count: 0,
      notifications: 0,
      bySubscription: new Map(),
      sample: [],
      searchedTo: undefined,
    };
    const kind = subscription ? 'notifications' : 'deliveries';
    const giveUpAt = performance.now() + limits.ms;
    let left = limits[kind];
    let lastMatched: string | undefined;
    let from = after;
    // Those that are away as well: what is to be sent of them is waited for, and what is closed or cancelled is so at
    // once.
    for (const { day } of daysWithin(await readDays(this.postgres), { after, before })) {
      for (;;) {
        if (left <= 0 || performance.now() > giveUpAt) return { ...counted, searchedTo: timeOfId(from.notificationId) };
        const bounds = { after: from, before, scan: Math.min(left, together[kind]), limit: null };
        const page = readAside(this.postgres, (query) =>
          subscription ? missed(query, day, meant, subscription, bounds) : counting(query, day, meant, bounds),
        );
        const read = await onDay(page, undefined);
        if (!read) break;
        const { cost, reached, counted: row } = read;
        counted.count += row.count;
        counted.notifications +=
          row.notifications - (row.first_matched !== null && row.first_matched === lastMatched ? 1 : 0);
        lastMatched = row.last_matched ?? lastMatched;
        for (const [id, count] of row.by_subscription)
          counted.bySubscription.set(id, (counted.bySubscription.get(id) ?? 0) + count);
        for (const [notificationId, subscriptionId] of row.sample)
          if (counted.sample.length < sampleLength) counted.sample.push({ notificationId, subscriptionId });
        left -= cost;
        if (!reached) break;
        from = reached;
      }
      from = { notificationId: lowestIdAt((day + 1) * dayMs), subscriptionId: lowestId };
    }
    return counted;
  }

  /** Milliseconds since 1970, by the ledger's clock. */
  async now(): Promise<number> {
    const [row] = await this.postgres.dataSource.query<[{ ms: number }]>(
      'SELECT floor(extract(epoch FROM now()) * 1000)::float8 AS ms',
    );
    return row.ms;
  }
}

interface Page extends Pick<Finding, 'reached'> {
  /** Of the rows that may be looked at. */
  cost: number;
  counted: Pick<
    CountedRow,
    'count' | 'notifications' | 'first_matched' | 'last_matched' | 'by_subscription' | 'sample'
  >;
}

async function counting(query: Query, day: number, meant: Meant, bounds: Bounds): Promise<Page> {
  const values = { ...bindSearch(meant, bounds), sample: sampleLength };
  const statements = meant.selection.channels ? countMeantOfChannels : countMeant;
  const [row] = await query<CountedRow>(statements[routeFor(meant)](day), values);
  const { walked, last_notification: lastId, last_subscription: lastSubscription } = row!;
  const last = { notificationId: lastId!, subscriptionId: lastSubscription! };
  return { cost: walked, reached: walked < bounds.scan ? undefined : last, counted: row! };
}

async function missed(
  query: Query,
  day: number,
  meant: Meant,
  subscription: Subscription,
  bounds: Bounds,
): Promise<Page> {
  const { found, walked, reached, withBody } = await findMissedOnDay(query, day, meant, subscription, bounds);
  return {
    cost: withBody + Math.ceil((walked - withBody) / withoutBody),
    reached,
    counted: {
      count: found.length,
      notifications: found.length,
      first_matched: found[0]?.notificationId ?? null,
      last_matched: found.at(-1)?.notificationId ?? null,
      by_subscription: found.length === 0 ? [] : [[subscription.id, found.length]],
      sample: found.slice(0, sampleLength).map((each) => [each.notificationId, each.subscriptionId]),
    },
  };
}

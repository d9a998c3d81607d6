import type { Query } from '../infra/postgres/postgres.js';
import { statement, type Statement, type Values } from '../infra/postgres/statement.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import { SinceLastLook } from './since-last-look.js';

/** Of each kind of unfinished deliveries: the time by which an index has them. */
const indexed = {
  /** When it is due; for most of those that wait that is still to come. */
  waiting: { condition: "state = 'waiting'", time: 'next_at' },
  /** When the queue got it. */
  queued: { condition: "state = 'queued'", time: 'queued_at' },
  /** When the lease ends of the process that has it in hand. */
  inHand: { condition: "state = 'queued' AND queued_at IS NULL", time: 'next_at' },
  /** When its outcome counts as unknown. */
  sending: { condition: "state = 'sending'", time: 'next_at' },
} as const;

export type Unfinished = keyof typeof indexed;

/** A condition with a parameter for the milliseconds since 1970: deliveries of that kind, of that time or later. */
export const unfinishedSince = (kind: Unfinished): string =>
  `${indexed[kind].condition} AND ${indexed[kind].time} >= to_timestamp($${kind}_since_ms::float8 / 1000)`;

/** In the order of the same index. */
export const byTimeOf = (kind: Unfinished): string => `ORDER BY ${indexed[kind].time}`;

export const oldestItems: Record<Unfinished, Statement> = {
  waiting: oldestItem('waiting'),
  queued: oldestItem('queued'),
  inHand: oldestItem('inHand'),
  sending: oldestItem('sending'),
};

function oldestItem(kind: Unfinished): Statement {
  const { time } = indexed[kind];
  return statement(
    'oldest-unfinished',
    `SELECT notification_id, subscription_id, ${time} AS since, extract(epoch FROM now() - ${time})::float8 AS seconds
     FROM delivery WHERE ${unfinishedSince(kind)} ${byTimeOf(kind)} LIMIT 1`,
    kind,
  );
}

export interface Oldest {
  notificationId: string;
  subscriptionId: string;
  since: Date;
  /** That long ago; negative: it is still to come. */
  seconds: number;
}

/** For `unfinishedSince`: from the oldest on, and nothing where there is none. */
export const fromOldest = (kind: Unfinished, oldest: Oldest | undefined): Values => ({
  [`${kind}_since_ms`]: oldest ? oldest.since.getTime() : Infinity,
});

/**
 * Finds the oldest unfinished delivery of each kind, again and again, and begins where it was the last time
 * (`SinceLastLook`). A count that begins there as well does not walk over what a snapshot keeps of those that are done.
 */
export class OldestUnfinished {
  private readonly looks: Record<Unfinished, SinceLastLook>;

  constructor(ledgerClock: LedgerClock) {
    this.looks = {
      waiting: new SinceLastLook(ledgerClock),
      queued: new SinceLastLook(ledgerClock),
      inHand: new SinceLastLook(ledgerClock),
      sending: new SinceLastLook(ledgerClock),
    };
  }

  /** @returns undefined where there is none */
  async find(query: Query, kind: Unfinished): Promise<Oldest | undefined> {
    let oldest: Oldest | undefined;
    await this.looks[kind].look(async (sinceMs, nowMs) => {
      type Row = { notification_id: string; subscription_id: string; since: Date; seconds: number };
      const [row] = await query<Row>(oldestItems[kind], { [`${kind}_since_ms`]: sinceMs });
      if (!row) return { count: 0, upToMs: nowMs };
      const { notification_id: notificationId, subscription_id: subscriptionId, since, seconds } = row;
      oldest = { notificationId, subscriptionId, since, seconds };
      // One that comes later may be due before it.
      return { count: 1, upToMs: Math.min(nowMs, since.getTime()) };
    });
    return oldest;
  }
}

import type { DeliveryKey, DeliveryState } from '../ledger/delivery.js';

export interface DeliveryFilter {
  notificationId?: string;
  subscriptionId?: string;
  state?: DeliveryState;
  /** Only the deliveries after this one in the list; the list runs from the newest notification to the oldest. */
  after?: DeliveryKey;
}

/** How the rows of a page are found without reading many that do not belong to it. */
export type Route =
  /** An index has them in the order of the list: the primary key, `delivery_dead`, `delivery_dead_newest` or `delivery_unsent`. */
  | 'index'
  /** The index of the state has all of them, in another order: they are read and sorted, unless they are too many. */
  | 'few'
  /** No index does: an index on every delivery would make accepting slower. So a limited range of the list is searched. */
  | 'scan';

const deadStates: ReadonlySet<DeliveryState> = new Set(['failed', 'expired', 'unknown']);
/** The indexes of deliveries that somebody works on, by state: what is in them, and in what order. */
const workIndexes: Partial<Record<DeliveryState, { condition: string; order: string }[]>> = {
  waiting: [{ condition: "state = 'waiting'", order: 'next_at' }],
  held: [
    { condition: "state = 'held' AND held_for <> 'order'", order: 'subscription_id, notification_id' },
    { condition: "state = 'held' AND held_for = 'order'", order: 'subscription_id, object_key, turn_nr' },
  ],
  queued: [{ condition: "state = 'queued'", order: 'queued_at' }],
  sending: [{ condition: "state = 'sending'", order: 'next_at' }],
};

export function routeOf({ notificationId, subscriptionId, state }: DeliveryFilter): Route {
  if (notificationId !== undefined) return 'index';
  if (state === undefined) return subscriptionId === undefined ? 'index' : 'scan';
  if (deadStates.has(state)) return 'index';
  if ((state === 'waiting' || state === 'held') && subscriptionId !== undefined) return 'index';
  return workIndexes[state] ? 'few' : 'scan';
}

/** The first rows of each index of a state that somebody works on. The order keeps the planner to that index. */
function fromWorkIndex(state: DeliveryState, columns: string, rows: number): string {
  const looks = workIndexes[state]!.map(
    ({ condition, order }) => `(SELECT ${columns} FROM delivery WHERE ${condition} ORDER BY ${order} LIMIT ${rows})`,
  );
  return `(${looks.join(' UNION ALL ')})`;
}

/** Whether the index of that state has more than so many rows. */
export function exceeds(state: DeliveryState, rows: number): string {
  return `SELECT count(*) > ${rows} AS yes FROM ${fromWorkIndex(state, '', rows + 1)} few`;
}

/*
 * Statements that read the ledger for people. All use the list's one order, so that every page costs the same, however far from
 * the start.
 */

/** The last row of the range to search, if the list is longer than that. Reads only the primary key. */
export function rangeEnd(filter: DeliveryFilter, rows: number): { text: string; values: unknown[] } {
  const conditions = new Conditions();
  conditions.addAfter(filter.after);
  return {
    text: `
      SELECT notification_id, subscription_id FROM delivery ${conditions.where()}
      ORDER BY notification_id DESC, subscription_id DESC OFFSET ${rows - 1} LIMIT 1`,
    values: conditions.values,
  };
}

/**
 * @param end where the search stops; not given: at the end of the list
 * @param few the rows of the state's index are at most that many, and are to be read and sorted
 */
export function page(
  filter: DeliveryFilter,
  limit: number,
  { end, few }: { end?: DeliveryKey; few?: number } = {},
): { text: string; values: unknown[] } {
  const conditions = new Conditions();
  if (filter.notificationId !== undefined)
    conditions.add((value) => `notification_id = ${value}`, filter.notificationId);
  if (filter.subscriptionId !== undefined)
    conditions.add((value) => `subscription_id = ${value}`, filter.subscriptionId);
  // As a constant, not a parameter: a partial index serves only a query that provably has its condition.
  if (filter.state !== undefined) conditions.addConstant(`state = '${filter.state}'`);
  conditions.addAfter(filter.after);
  if (end) conditions.addUpTo(end);
  const from = few === undefined ? 'delivery' : `${fromWorkIndex(filter.state!, '*', few)} few`;
  return {
    text: `
      WITH page AS MATERIALIZED (
        SELECT * FROM ${from} ${conditions.where()}
        ORDER BY notification_id DESC, subscription_id DESC LIMIT ${limit}
      )
      ${details}
      ORDER BY page.notification_id DESC, page.subscription_id DESC`,
    values: conditions.values,
  };
}

export function one(key: DeliveryKey): { text: string; values: unknown[] } {
  return {
    text: `
      WITH page AS MATERIALIZED (SELECT * FROM delivery WHERE notification_id = $1 AND subscription_id = $2)
      ${details}`,
    values: [key.notificationId, key.subscriptionId],
  };
}

export const attempts = `
  SELECT number, generation, started_at, duration_ms, connect_ms, first_byte_ms, status, error, details FROM attempt
  WHERE notification_id = $1 AND subscription_id = $2 ORDER BY number, generation`;

// The LIMIT keeps the planner from joining the other way round, which would read all notifications.
const details = `
  SELECT page.notification_id, page.subscription_id, page.state, page.generation, page.attempts, page.failures,
    page.replays, CASE WHEN page.state = 'waiting' THEN page.next_at END AS next_attempt_at,
    CASE WHEN page.state = 'held' THEN page.held_for END AS held_for,
    page.last_status, page.last_error, page.ended_at, n.channel, n.accepted_at
  FROM page CROSS JOIN LATERAL (SELECT channel, accepted_at FROM notification WHERE id = page.notification_id LIMIT 1) n`;

class Conditions {
  readonly values: unknown[] = [];
  private readonly texts: string[] = [];

  add(text: (value: string) => string, value: unknown): void {
    this.values.push(value);
    this.texts.push(text(`$${this.values.length}`));
  }

  addConstant(text: string): void {
    this.texts.push(text);
  }

  // Postgres skips partitions only by a condition on the plain column, so the condition is written in both ways.
  addAfter(key: DeliveryKey | undefined): void {
    if (!key) return;
    this.add((value) => `notification_id <= ${value}`, key.notificationId);
    const notification = `$${this.values.length}`;
    this.add((value) => `(notification_id, subscription_id) < (${notification}, ${value})`, key.subscriptionId);
  }

  addUpTo(key: DeliveryKey): void {
    this.add((value) => `notification_id >= ${value}`, key.notificationId);
    const notification = `$${this.values.length}`;
    this.add((value) => `(notification_id, subscription_id) >= (${notification}, ${value})`, key.subscriptionId);
  }

  where(): string {
    return this.texts.length === 0 ? '' : `WHERE ${this.texts.join(' AND ')}`;
  }
}

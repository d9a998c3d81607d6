import type { EntityManager } from 'typeorm';
import type { Postgres } from '../infra/postgres/postgres.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';

/*
 * The table `held_subscription`: one row for each subscription that has deliveries held (but for their order), or may
 * have. Each statement that holds a delivery also makes sure that the row is there, so no delivery can be held and
 * forgotten.
 */

/**
 * Where nothing is held, and nothing was for this long, looks may be far apart: the statement that holds a delivery
 * again makes a look due.
 */
export const quietSeconds = 10;

/** Of `held_subscription s`, for a statement that holds a delivery: `look_at`. */
export const lookSoon = `CASE WHEN s.held_at < now() - interval '${quietSeconds} s' THEN LEAST(s.look_at, now())
        ELSE s.look_at END`;

/**
 * `rate_credit` of a row that is made: of a subscription of which nothing was held for a while, the next one goes at
 * once, however slow its rate is. It may: the row is kept until it has earned that (forgetHeldSubscriptions).
 */
export const firstCredit = 1;

/**
 * `held_at` is kept as exact as this, to spare writes. Far below the time after which a row is forgotten
 * (forgetHeldSubscriptions).
 */
const refreshSeconds = 5;

/**
 * A common table expression of a statement that accepts: makes the row of each `subscription_id` in `source`, or
 * refreshes one that is older than a few seconds. Not each time: a batch that writes the row makes others wait. In the
 * order of the subscriptions, so that two batches wait for each other instead of deadlocking. The lookup is by `= ANY`,
 * as in `sameDelivery`, so that it goes by the index in any plan.
 */
export const holding = (source: string): string => `
  holding AS (
    INSERT INTO held_subscription AS s (subscription_id, rate_credit)
    SELECT DISTINCT subscription_id, ${firstCredit} FROM ${source} AS source
    WHERE NOT EXISTS (
      SELECT FROM held_subscription h
      WHERE h.subscription_id = ANY (ARRAY[source.subscription_id]) AND h.held_at > now() - interval '${refreshSeconds} s'
    )
    ORDER BY subscription_id
    ON CONFLICT (subscription_id) DO UPDATE SET held_at = now(), look_at = ${lookSoon}
  )`;

/**
 * No look is planned later than this. One that lies further ahead was planned before Postgres' clock was set back, or
 * before a standby with a clock that is behind was promoted: it is due, or nothing would be released until the clock is
 * where it was.
 */
export const longestPauseMs = 600_000;

/** A dispatcher's claim of a look. Other processes may make another one due before it has ended (lookNow). */
export interface LookClaim {
  subscriptionId: string;
  /** `look_at` of its row, for as long as nobody makes another look due. Times are exact, as Postgres writes them. */
  claimedUntil: string;
  /** When the credit was reckoned that it has read. */
  creditedAt: string;
}

/** A subscription that a dispatcher looks at now. */
export interface Look extends LookClaim {
  window: number;
  /** Released and not yet settled, after the former look. */
  outstanding: number;
  isBacklog: boolean;
  /** Calls that its rate allowed and that were not used, when it was reckoned last, and the seconds since then. */
  rateCredit: number;
  secondsSinceCredit: number;
  /** Since one was last held, to a few seconds. */
  secondsSinceHeld: number;
  /** At least the version of the settings for which it is looked at (lookNow). */
  catalogueVersion: number;
}

// Where another transaction has written a row that is claimed, Postgres evaluates the join of an UPDATE once more, with
// all that it reads; an array it has already. So none is claimed beside those that were counted.
export const claimLooksItems = statement(
  'claim-looks',
  `WITH due AS MATERIALIZED (
     SELECT subscription_id FROM held_subscription
     WHERE look_at <= now() ORDER BY look_at LIMIT $limit FOR UPDATE SKIP LOCKED
   ),
   not_planned AS MATERIALIZED (
     SELECT subscription_id FROM held_subscription
     WHERE look_at > now() + interval '${longestPauseMs} ms'
     ORDER BY look_at LIMIT GREATEST(0, $limit - (SELECT count(*) FROM due)) FOR UPDATE SKIP LOCKED
   )
   UPDATE held_subscription s SET look_at = now() + $claim_ms * interval '1 ms'
   WHERE s.subscription_id = ANY (ARRAY(SELECT subscription_id FROM due UNION ALL SELECT subscription_id FROM not_planned))
   RETURNING s.subscription_id, s.look_at::text AS claimed_until, s.credited_at::text AS credited_at,
     s.release_window, s.outstanding, s.is_backlog, s.rate_credit,
     GREATEST(0, extract(epoch FROM now() - s.credited_at))::float8 AS since,
     extract(epoch FROM now() - s.held_at)::float8 AS since_held,
     (SELECT version FROM catalogue) AS catalogue_version`,
);

/** Longer than a look takes. A dispatcher that dies in it leaves its looks to others from then on. */
const claimMs = 5000;

/**
 * Claims the looks that are due, some of them if there are many: no other dispatcher makes them meanwhile, unless they
 * are made due once more.
 */
export async function claimLooks(postgres: Postgres, limit: number): Promise<Look[]> {
  const rows = await postgres.query<{
    subscription_id: string;
    claimed_until: string;
    credited_at: string;
    release_window: number;
    outstanding: number;
    is_backlog: boolean;
    rate_credit: number;
    since: number;
    since_held: number;
    catalogue_version: string;
  }>(claimLooksItems, { claim_ms: claimMs, limit });
  return rows.map((row) => ({
    subscriptionId: row.subscription_id,
    claimedUntil: row.claimed_until,
    creditedAt: row.credited_at,
    window: row.release_window,
    outstanding: row.outstanding,
    isBacklog: row.is_backlog,
    rateCredit: row.rate_credit,
    secondsSinceCredit: row.since,
    secondsSinceHeld: row.since_held,
    catalogueVersion: Number(row.catalogue_version),
  }));
}

/** The result of a look. */
export interface LookedAt extends LookClaim {
  /** Deliveries that it released. */
  released: number;
  window: number;
  /** Released and not yet settled, with those that this look released. */
  outstanding: number;
  /** False: nothing is held any more. */
  isBacklog: boolean;
  /** Credit that is left; null: it was not reckoned. */
  rateCredit: number | null;
  nextLookInMs: number;
}

const lookedAt = rowsOf<LookedAt>('item', {
  subscription_id: ['uuid', (item) => item.subscriptionId],
  claimed_until: ['timestamptz', (item) => item.claimedUntil],
  credited_at: ['timestamptz', (item) => item.creditedAt],
  released: ['int', (item) => item.released],
  release_window: ['int', (item) => item.window],
  outstanding: ['int', (item) => item.outstanding],
  is_backlog: ['bool', (item) => item.isBacklog],
  rate_credit: ['float8', (item) => item.rateCredit],
  next_ms: ['float8', (item) => item.nextLookInMs],
});

// One that began later may have shrunk the window; what lies further ahead is from before Postgres' clock was set back.
// A look that was made due meanwhile stays so: the settings of the subscription have changed (lookNow), for example. It
// may be under way, with the same credit. So the first to end writes what is left, and each other one takes off what it
// has released: no call is given twice in all. Locked in the order in which a statement that holds deliveries writes
// the rows (src/ledger/hold.service.ts): they wait for each other instead of deadlocking.
export const endLooksItems = statement(
  'end-looks',
  `WITH locked AS MATERIALIZED (
     SELECT subscription_id FROM held_subscription
     WHERE subscription_id = ANY (${lookedAt.array('subscription_id')}) ORDER BY subscription_id FOR UPDATE
   )
   UPDATE held_subscription s SET
     release_window = CASE WHEN shrunk_at BETWEEN now() - interval '1 s' AND now() + interval '1 minute' THEN LEAST(s.release_window, item.release_window)
       ELSE item.release_window END,
     outstanding = item.outstanding,
     is_backlog = s.is_backlog AND item.is_backlog,
     rate_credit = CASE WHEN item.rate_credit IS NULL THEN s.rate_credit
       WHEN s.credited_at = item.credited_at THEN item.rate_credit ELSE s.rate_credit - item.released END,
     credited_at = CASE WHEN item.rate_credit IS NOT NULL AND s.credited_at = item.credited_at
       THEN item.claimed_until - $claim_ms * interval '1 ms' ELSE s.credited_at END,
     look_at = CASE WHEN s.look_at = item.claimed_until THEN now() + item.next_ms * interval '1 ms' ELSE s.look_at END
   FROM ${lookedAt.from} JOIN locked USING (subscription_id)
   WHERE s.subscription_id = item.subscription_id`,
);

export async function endLooks(postgres: Postgres, looked: readonly LookedAt[]): Promise<void> {
  await postgres.query(endLooksItems, { ...lookedAt.bind(looked), claim_ms: claimMs });
}

// A transaction that holds one refreshes held_at where it is older than a few seconds. So nothing can be on its way
// into the ledger unseen, unless a transaction lasts longer than this.
export const forgetItems = statement(
  'forget-held-subscriptions',
  `DELETE FROM held_subscription
   WHERE subscription_id = ANY (ARRAY(
     SELECT s.subscription_id FROM held_subscription s
     WHERE s.subscription_id = ANY ($subscriptions::uuid[]) AND s.held_at < now() - $idle_ms * interval '1 ms'
       AND (SELECT d.subscription_id FROM delivery d
            WHERE d.subscription_id = s.subscription_id AND d.state = 'held' AND d.held_for <> 'order' LIMIT 1) IS NULL
       AND NOT EXISTS (
         SELECT FROM subscription WHERE id = s.subscription_id
           AND s.rate_credit + rate_per_second * extract(epoch FROM now() - s.credited_at) < ${firstCredit}
       )
     ORDER BY s.subscription_id FOR UPDATE
   ))`,
);

/**
 * Forgets those for which nothing was held for so long, and nothing is; and by whose rate the next call may be made at
 * once.
 */
export async function forgetHeldSubscriptions(
  postgres: Postgres,
  subscriptionIds: readonly string[],
  idleMs: number,
): Promise<void> {
  await postgres.query(forgetItems, { subscriptions: subscriptionIds, idle_ms: idleMs });
}

/**
 * Runs in the transaction that changes the settings of subscriptions: a dispatcher looks at them as soon as that is
 * committed. In their order, as in `holding`.
 */
export async function lookNow(manager: EntityManager, subscriptionIds: readonly string[]): Promise<void> {
  if (subscriptionIds.length === 0) return;
  await manager.query(
    `INSERT INTO held_subscription (subscription_id, rate_credit)
     SELECT id, ${firstCredit} FROM unnest($1::uuid[]) AS wanted (id) ORDER BY id
     ON CONFLICT (subscription_id) DO UPDATE SET look_at = now()`,
    [subscriptionIds],
  );
}

/**
 * The same where they were paused, or had another address. Their held deliveries begin to be too old for its retry
 * policy only now (src/ledger/free-held.ts).
 */
export async function noteResumed(manager: EntityManager, subscriptionIds: readonly string[]): Promise<void> {
  if (subscriptionIds.length === 0) return;
  await manager.query(
    `INSERT INTO held_subscription (subscription_id, rate_credit, resumed_at)
     SELECT id, ${firstCredit}, now() FROM unnest($1::uuid[]) AS wanted (id) ORDER BY id
     ON CONFLICT (subscription_id) DO UPDATE SET look_at = now(), resumed_at = now()`,
    [subscriptionIds],
  );
}

/**
 * More subscriptions than this with a backlog are not known to the api: their new deliveries are held by a worker
 * instead.
 */
const mostBacklogs = 10_000;

export const readBacklogsItems = statement(
  'read-backlogs',
  'SELECT subscription_id FROM held_subscription WHERE is_backlog LIMIT $limit',
);

const readPacesItems = statement(
  'read-paces',
  `SELECT subscription_id AS "subscriptionId", release_window AS "window", outstanding, held_at AS "heldAt"
   FROM held_subscription WHERE is_backlog ORDER BY held_at DESC LIMIT $limit`,
);

/** How what is held for a subscription is released. */
export interface Pace {
  subscriptionId: string;
  /** So many may be released and not yet settled: what its endpoint has shown that it can take. */
  window: number;
  /** Released and not yet settled, at the last look. */
  outstanding: number;
  /** When one was last held, to a few seconds. */
  heldAt: Date;
}

/** Of subscriptions with a backlog, those for which something was held last. */
export const readPaces = (postgres: Postgres, limit: number): Promise<Pace[]> =>
  postgres.queryAside<Pace>(readPacesItems, { limit });

/** The subscriptions of which more arrived than their endpoints could take. */
export async function readBacklogs(postgres: Postgres): Promise<Set<string>> {
  const rows = await postgres.query<{ subscription_id: string }>(readBacklogsItems, { limit: mostBacklogs });
  return new Set(rows.map((row) => row.subscription_id));
}

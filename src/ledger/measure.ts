import type { Postgres } from '../infra/postgres/postgres.js';
import { statement, type Statement } from '../infra/postgres/statement.js';
import type { DeadState } from '../operational-events/operational-events.service.js';
import { heldReasons, type HeldReason } from './delivery.js';
import { byTimeOf, fromOldest, unfinishedSince, type OldestUnfinished, type Unfinished } from './oldest-unfinished.js';

/*
 * How much there is of what is unfinished or dead. Each count is bounded: so many rows of a partial index that has
 * nothing else in it, from the oldest on. Beyond that Postgres is asked for its planner's estimate, which reads no row.
 */

/** Counted exactly up to so many. Beyond it, an estimate, and at least that, but for parts of what was counted. */
const mostCounted = 10_000;

/** A reason that none of those counted is held for is there if as many are estimated, as a part of those counted. */
const leastUnseen = 0.1;

export interface Count {
  count: number;
  isEstimate: boolean;
}

export interface Measured {
  queued: Count;
  sending: Count;
  waiting: Count;
  /** `order`: in line behind another one about the same object. */
  held: Record<HeldReason, Count>;
  dead: Record<DeadState, Count>;
  /** Those that wait and are due, and have not been handed out yet. `repeated`: not for a first attempt. */
  due: { first: Count; repeated: Count };
  /** How long the oldest of them has been due; 0: none is. */
  oldestDueSeconds: number;
  /** How long ago the oldest delivery that the queue has was handed to it; 0: it has none. */
  oldestQueuedSeconds: number;
}

const counted = {
  queued: unfinishedSince('queued'),
  in_hand: unfinishedSince('inHand'),
  sending: unfinishedSince('sending'),
  waiting: unfinishedSince('waiting'),
  order: "state = 'held' AND held_for = 'order'",
  failed: dead('failed'),
  expired: dead('expired'),
  unknown: dead('unknown'),
} as const;
type Counted = keyof typeof counted;

/**
 * In the order of the index that begins with the state. Without it the planner may take the one that begins with the
 * subscription, and a count of a state that is rare walks over all that is dead.
 */
function dead(state: DeadState): string {
  return `state = '${state}' ORDER BY notification_id`;
}

export const countItems = statement(
  'measure-ledger',
  `SELECT
     ${Object.entries(counted)
       .map(
         ([name, where]) =>
           `(SELECT count(*) FROM (SELECT FROM delivery WHERE ${where} LIMIT $most) AS c)::int AS ${name}`,
       )
       .join(',\n     ')}`,
);

export const countDueItems = statement(
  'measure-due',
  `SELECT count(*)::int AS count, count(*) FILTER (WHERE failures > 0 OR held_for IS NOT NULL)::int AS repeated
   FROM (
     SELECT failures, held_for FROM delivery WHERE ${unfinishedSince('waiting')} AND next_at <= now()
     ${byTimeOf('waiting')} LIMIT $most
   ) AS c`,
);

/** Not a count for each reason: one that is rare would be looked for among all that are held. */
export const countHeldItems = statement(
  'measure-held',
  `SELECT held_for, count(*)::int AS count
   FROM (SELECT held_for FROM delivery WHERE state = 'held' AND held_for <> 'order' LIMIT $most) AS c
   GROUP BY held_for`,
);

/** By reason, `mostCounted` together at most; there is no count of a reason for which nothing is held. */
export async function countHeld(postgres: Postgres): Promise<Partial<Record<HeldReason, number>>> {
  const rows = await postgres.query<{ held_for: HeldReason; count: number }>(countHeldItems, { most: mostCounted });
  return Object.fromEntries(rows.map(({ held_for: reason, count }) => [reason, count]));
}

// Of the columns alone, not together: the planner takes those that depend on each other for independent, and finds far
// too few.
const estimates: Record<string, Statement> = Object.fromEntries(
  [
    ...['queued', 'sending', 'waiting', 'failed', 'expired', 'unknown'].map((state) => `state = '${state}'`),
    ...heldReasons.map((reason) => `held_for = '${reason}'`),
    'next_at <= now()',
  ].map((condition, nr) => [
    condition,
    statement('estimate-ledger', `EXPLAIN (FORMAT JSON) SELECT FROM delivery WHERE ${condition}`, String(nr)),
  ]),
);

/** @param most how many are counted exactly */
export async function measureLedger(
  postgres: Postgres,
  unfinished: OldestUnfinished,
  most = mostCounted,
): Promise<Measured> {
  const find = (kind: Unfinished) => unfinished.find((item, values) => postgres.query(item, values), kind);
  const [waiting, queued, inHand, sending] = await Promise.all([
    find('waiting'),
    find('queued'),
    find('inHand'),
    find('sending'),
  ]);
  const since = {
    ...fromOldest('waiting', waiting),
    ...fromOldest('queued', queued),
    ...fromOldest('inHand', inHand),
    ...fromOldest('sending', sending),
  };
  const [[row], [due], held] = await Promise.all([
    postgres.query<Record<Counted, number>>(countItems, { ...since, most }),
    postgres.query<{ count: number; repeated: number }>(countDueItems, { ...since, most }),
    postgres.query<{ held_for: HeldReason; count: number }>(countHeldItems, { most }),
  ]);
  const countOf = (count: number, condition: string) => exactOrEstimated(postgres, count, most, condition);
  const ofState = (state: 'sending' | 'waiting' | DeadState) => countOf(row![state], `state = '${state}'`);
  const isHeldEstimate = held.reduce((sum, { count }) => sum + count, 0) >= most;
  const heldFor = async (reason: HeldReason): Promise<Count> => {
    if (reason === 'order') return countOf(row!.order, "held_for = 'order'");
    const count = held.find(({ held_for: one }) => one === reason)?.count ?? 0;
    if (!isHeldEstimate) return { count, isEstimate: false };
    const estimate = await estimated(postgres, count, `held_for = '${reason}'`);
    // The planner never says that there is none: of each day it takes one for the least.
    return count === 0 && estimate.count < most * leastUnseen ? { ...estimate, count: 0 } : estimate;
  };
  const allDue = await countOf(due!.count, 'next_at <= now()');
  const repeated = due!.count === 0 ? 0 : Math.round((allDue.count * due!.repeated) / due!.count);
  return {
    queued: await countOf(row!.queued + row!.in_hand, "state = 'queued'"),
    sending: await ofState('sending'),
    waiting: await ofState('waiting'),
    held: {
      'endpoint-busy': await heldFor('endpoint-busy'),
      'endpoint-parked': await heldFor('endpoint-parked'),
      paused: await heldFor('paused'),
      rate: await heldFor('rate'),
      order: await heldFor('order'),
    },
    dead: { failed: await ofState('failed'), expired: await ofState('expired'), unknown: await ofState('unknown') },
    due: { first: { ...allDue, count: allDue.count - repeated }, repeated: { ...allDue, count: repeated } },
    oldestDueSeconds: Math.max(0, waiting?.seconds ?? 0),
    oldestQueuedSeconds: Math.max(0, queued?.seconds ?? 0),
  };
}

async function exactOrEstimated(postgres: Postgres, count: number, most: number, condition: string): Promise<Count> {
  return count < most ? { count, isEstimate: false } : estimated(postgres, count, condition);
}

/** @param atLeast as many have been counted */
async function estimated(postgres: Postgres, atLeast: number, condition: string): Promise<Count> {
  const [row] = await postgres.query<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>(estimates[condition]!);
  return { count: Math.max(atLeast, row!['QUERY PLAN'][0].Plan['Plan Rows']), isEstimate: true };
}

import type { Postgres, Query } from '../infra/postgres/postgres.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';
import { fitProbe } from './fit-probe.js';

/** An endpoint whose circuit breaker is open. */
export interface OpenEndpoint {
  /** Its origin, or its callback URL, with the TLS identity of the subscriptions that call it with one of their own. */
  address: string;
  openedAt: Date;
  reason: string;
  /** Calls that failed one after the other before it was opened. */
  failures: number;
  /** Claimed since, to find out whether it has recovered: some come to no call. */
  probes: number;
  /** While a probe is under way: when it is taken for lost. */
  nextProbeAt: Date;
  /**
   * Before this not even a delivery that is alone is sent: a probe is under way, or the receiver asked to be left
   * alone.
   */
  leftAloneUntil: Date;
  /** The receiver asked to be left alone until then; null: it never did. */
  askedUntil: Date | null;
}

/** A receiver may ask for no more by `Retry-After`: 24 hours. */
export const longestAskedMs = 86_400_000;

/*
 * A time that lies further ahead than any that is planned is past: Postgres' clock was set back, or a standby with a
 * clock that is behind was promoted, and nothing would be probed until the clock is where it was. A receiver may ask
 * for a day, a probe is kept for seconds, and our own pauses are no longer than a minute.
 */
const asked = `CASE WHEN endpoint.asked_until <= now() + interval '${longestAskedMs / 1000 + 60} s' THEN endpoint.asked_until END`;
const probing = `CASE WHEN endpoint.probing_until <= now() + interval '2 minutes' THEN endpoint.probing_until END`;
const nextProbe = `CASE WHEN endpoint.next_probe_at <= GREATEST(now() + interval '2 minutes', ${asked}) THEN endpoint.next_probe_at
  ELSE LEAST(endpoint.opened_at, now() - interval '1 s') END`;

/** Of more than these the newest are not read: their deliveries are tried by the workers, a few at a time. */
const mostOpen = 10_000;

const readOpenItems = statement(
  'read-open-endpoints',
  `SELECT address, opened_at, reason, failures, probes, GREATEST(${nextProbe}, ${probing}) AS next_probe_at,
     GREATEST(${asked}, ${probing}, LEAST(opened_at, now())) AS left_alone_until, ${asked} AS asked_until,
     GREATEST(extract(epoch FROM now() - opened_at) * 1000, 0)::float8 AS open_ms
   FROM endpoint ORDER BY opened_at, address LIMIT $limit`,
);

/** @returns `longestMs` the one that was opened first has been open, by the ledger's clock; 0: none is open */
export async function readOpenEndpoints(postgres: Postgres): Promise<{ open: OpenEndpoint[]; longestMs: number }> {
  const rows = await postgres.query<{
    address: string;
    opened_at: Date;
    reason: string;
    failures: number;
    probes: number;
    next_probe_at: Date;
    left_alone_until: Date;
    asked_until: Date | null;
    open_ms: number;
  }>(readOpenItems, { limit: mostOpen });
  const open = rows.map((row) => ({
    address: row.address,
    openedAt: row.opened_at,
    reason: row.reason,
    failures: row.failures,
    probes: row.probes,
    nextProbeAt: row.next_probe_at,
    leftAloneUntil: row.left_alone_until,
    askedUntil: row.asked_until,
  }));
  return { open, longestMs: rows[0]?.open_ms ?? 0 };
}

/** That an endpoint is in trouble. */
export interface Opening {
  address: string;
  reason: string;
  failures: number;
  probeInMs: number;
  /** The receiver asked to be left alone for that long. */
  isAsked: boolean;
}

const openings = rowsOf<Opening>('item', {
  address: ['text', (item) => item.address],
  reason: ['text', (item) => item.reason],
  failures: ['int', (item) => item.failures],
  probe_ms: ['float8', (item) => item.probeInMs],
  asked_ms: ['float8', (item) => (item.isAsked ? item.probeInMs : null)],
});

// In order: processes that open the same ones wait for each other instead of deadlocking. One statement may write a row
// only once.
const openItems = statement(
  'open-endpoints',
  `INSERT INTO endpoint (address, reason, failures, next_probe_at, asked_until)
   SELECT address, min(reason), max(failures), now() + max(probe_ms) * interval '1 ms', now() + max(asked_ms) * interval '1 ms'
   FROM ${openings.from} GROUP BY address ORDER BY address
   ON CONFLICT (address) DO UPDATE SET
     next_probe_at = GREATEST(${nextProbe}, EXCLUDED.next_probe_at),
     asked_until = GREATEST(${asked}, EXCLUDED.asked_until)
   RETURNING address, xmax = 0 AS is_new`,
);

/** @returns the addresses that this call opened; the others were open already, and are not probed sooner than that */
export async function openEndpoints(postgres: Postgres, asked: readonly Opening[]): Promise<Set<string>> {
  const rows = await postgres.query<{ address: string; is_new: boolean }>(openItems, openings.bind(asked));
  return new Set(rows.filter((row) => row.is_new).map((row) => row.address));
}

const closings = rowsOf<string>('item', { address: ['text', (address) => address] });

// Locked in order, as they are opened.
const closeItems = statement(
  'close-endpoints',
  `WITH locked AS MATERIALIZED (
     SELECT address FROM endpoint WHERE address = ANY (${closings.array('address')}) ORDER BY address FOR UPDATE
   )
   DELETE FROM endpoint USING locked
   WHERE endpoint.address = locked.address AND ($although_asked::bool OR COALESCE(${asked}, '-infinity') <= now())
   RETURNING endpoint.address, opened_at, reason, failures, (extract(epoch FROM now() - opened_at) * 1000)::float8 AS open_ms`,
);

/** An endpoint that is open no more. */
export interface ClosedEndpoint {
  address: string;
  openedAt: Date;
  reason: string;
  failures: number;
  /** Milliseconds. */
  openMs: number;
}

/**
 * @param query of a transaction, or without one
 * @param althoughAsked also those that have asked to be left alone for longer
 * @returns those that were open, and are not any more
 */
export async function closeEndpoints(
  query: Query,
  addresses: readonly string[],
  althoughAsked: boolean,
): Promise<ClosedEndpoint[]> {
  const values = { ...closings.bind(addresses), although_asked: althoughAsked };
  const rows = await query<{ address: string; opened_at: Date; reason: string; failures: number; open_ms: number }>(
    closeItems,
    values,
  );
  return rows.map((row) => ({
    address: row.address,
    openedAt: row.opened_at,
    reason: row.reason,
    failures: row.failures,
    openMs: row.open_ms,
  }));
}

/** A probe that a process wants to make. */
export interface ProbeClaim {
  address: string;
  subscriptionId: string;
  /** A held delivery is to be released; otherwise one that is due is the probe. */
  isRelease: boolean;
}

const claims = rowsOf<ProbeClaim>('item', {
  address: ['text', (item) => item.address],
  subscription_id: ['uuid', (item) => item.subscriptionId],
  is_release: ['bool', (item) => item.isRelease],
});

// One of several processes that try gets it: one that is being claimed or changed is left alone. Of several
// subscriptions one by chance: the calls of one may tell nothing of the endpoint, for want of a token for example, and
// it would keep it parked for all others.
export const claimProbesItems = statement(
  'claim-probes',
  `WITH free AS MATERIALIZED (
     SELECT address, ${nextProbe} <= now() AS is_due FROM endpoint
     WHERE address = ANY (${claims.array('address')}) AND GREATEST(${asked}, ${probing}, '-infinity') <= now()
     FOR UPDATE SKIP LOCKED
   ),
   claim AS MATERIALIZED (
     SELECT DISTINCT ON (address) address, item.subscription_id, is_due
     FROM ${claims.from} JOIN free USING (address) CROSS JOIN LATERAL (
       SELECT ${fitProbe('item.subscription_id')} IS NOT NULL AS has_held
     ) AS others
     WHERE CASE WHEN item.is_release THEN is_due AND has_held ELSE is_due OR NOT has_held END
     ORDER BY address, random()
   )
   UPDATE endpoint e SET
     probes = probes + 1,
     probing_until = now() + $lease_ms * interval '1 ms',
     next_probe_at = CASE WHEN is_due THEN now() + GREATEST(
       $shortest_ms * interval '1 ms', LEAST($longest_ms * interval '1 ms', (now() - opened_at) / $fraction::float8)
     ) ELSE next_probe_at END
   FROM claim
   WHERE e.address = claim.address
   RETURNING e.address, claim.subscription_id`,
);

/**
 * The time from one probe to the next: a fraction of the time that the endpoint has been open, within bounds, or until
 * the former has ended.
 */
export interface ProbePauses {
  shortestMs: number;
  longestMs: number;
  fraction: number;
  /** A probe that has neither ended nor been kept by then is taken for lost. */
  leaseMs: number;
}

/**
 * Probes that are due, and for which a delivery is there. Each goes to one process, and to one of several claims for
 * the same endpoint. A delivery that is due while none is held for its subscription is alone, and need not wait until a
 * probe is due: its schedule stays as it is, unless the receiver asked to be left alone. It moves no other probe: those
 * of others would be put off by one that comes to no call, for want of a token.
 * @returns the claims that are met
 */
export async function claimProbes(
  postgres: Postgres,
  asked: readonly ProbeClaim[],
  { shortestMs, longestMs, fraction, leaseMs }: ProbePauses,
): Promise<ProbeClaim[]> {
  const pauses = { shortest_ms: shortestMs, longest_ms: longestMs, fraction, lease_ms: leaseMs };
  const rows = await postgres.query<{ address: string; subscription_id: string }>(claimProbesItems, {
    ...claims.bind(asked),
    ...pauses,
  });
  const met = new Set(rows.map((row) => `${row.subscription_id} ${row.address}`));
  return asked.filter(({ address, subscriptionId }) => met.has(`${subscriptionId} ${address}`));
}

// Locked in order, as they are opened. Of one that has ended meanwhile nothing is kept: the next may be claimed.
const keepProbesItems = statement(
  'keep-probes',
  `UPDATE endpoint SET probing_until = now() + $lease_ms * interval '1 ms'
   WHERE address = ANY (ARRAY(
     SELECT address FROM endpoint
     WHERE address = ANY ($addresses::text[]) AND probing_until IS NOT NULL ORDER BY address FOR UPDATE
   ))`,
);

/** Probes of these are under way: from now on they have the whole lease again. */
export async function keepProbes(postgres: Postgres, addresses: readonly string[], leaseMs: number): Promise<void> {
  await postgres.query(keepProbesItems, { addresses, lease_ms: leaseMs });
}

export interface EndedProbe {
  address: string;
  pauseMs: number;
  /**
   * It says nothing of the endpoint: the next one need not wait for the pause of this one.
   */
  foundNothing: boolean;
}

const ended = rowsOf<EndedProbe>('item', {
  address: ['text', (item) => item.address],
  pause_ms: ['float8', (item) => item.pauseMs],
  found_nothing: ['bool', (item) => item.foundNothing],
});

const endProbesItems = statement(
  'end-probes',
  `WITH locked AS MATERIALIZED (
     SELECT address FROM endpoint WHERE address = ANY (${ended.array('address')}) ORDER BY address FOR UPDATE
   )
   UPDATE endpoint SET probing_until = NULL, next_probe_at = GREATEST(
     CASE WHEN item.found_nothing THEN ${asked} ELSE ${nextProbe} END, now() + item.pause_ms * interval '1 ms'
   )
   FROM (
     SELECT address, max(pause_ms) AS pause_ms, bool_or(found_nothing) AS found_nothing FROM ${ended.from} GROUP BY address
   ) AS item JOIN locked USING (address)
   WHERE endpoint.address = item.address AND probing_until IS NOT NULL`,
);

/**
 * The next one is due after its pause, which began with the claim, unless it found nothing; and not before `pauseMs`
 * from now.
 */
export async function endProbes(postgres: Postgres, probes: readonly EndedProbe[]): Promise<void> {
  await postgres.query(endProbesItems, ended.bind(probes));
}

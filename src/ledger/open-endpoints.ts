import type { Postgres, Query } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';

/** An endpoint whose circuit breaker is open. */
export interface OpenEndpoint {
  /** Its origin, or its callback URL. */
  address: string;
  openedAt: Date;
  reason: string;
  /** Calls that failed one after the other before it was opened. */
  failures: number;
  /** Calls made since to find out whether it has recovered. */
  probes: number;
  /** While a probe is under way: when it is taken for lost. */
  nextProbeAt: Date;
  /** Milliseconds until the next probe, by Postgres' clock; negative when it is due. */
  probeInMs: number;
}

/** Of more than these the newest are not read: their deliveries are tried by the workers, a few at a time. */
const mostOpen = 10_000;

export const readOpenItems = statement(
  'read-open-endpoints',
  `SELECT *, (extract(epoch FROM next_probe_at - now()) * 1000)::float8 AS probe_in_ms
   FROM (
     SELECT address, opened_at, reason, failures, probes, GREATEST(next_probe_at, probing_until) AS next_probe_at
     FROM endpoint ORDER BY opened_at, address LIMIT $limit
   ) AS oldest ORDER BY opened_at, address`,
);

export async function readOpenEndpoints(postgres: Postgres): Promise<OpenEndpoint[]> {
  const rows = await postgres.query<{
    address: string;
    opened_at: Date;
    reason: string;
    failures: number;
    probes: number;
    next_probe_at: Date;
    probe_in_ms: number;
  }>(readOpenItems, { limit: mostOpen });
  return rows.map((row) => ({
    address: row.address,
    openedAt: row.opened_at,
    reason: row.reason,
    failures: row.failures,
    probes: row.probes,
    nextProbeAt: row.next_probe_at,
    probeInMs: row.probe_in_ms,
  }));
}

const openItem = statement(
  'open-endpoint',
  `INSERT INTO endpoint (address, reason, failures, next_probe_at)
   VALUES ($address, $reason, $failures, now() + $probe_ms * interval '1 ms')
   ON CONFLICT (address) DO UPDATE SET next_probe_at = GREATEST(endpoint.next_probe_at, EXCLUDED.next_probe_at)
   RETURNING xmax = 0 AS is_new`,
);

/** @returns whether this call opened it; false: it was open already, and is not probed sooner than that */
export async function openEndpoint(
  postgres: Postgres,
  { address, reason, failures }: { address: string; reason: string; failures: number },
  probeInMs: number,
): Promise<boolean> {
  const [row] = await postgres.query<{ is_new: boolean }>(openItem, { address, reason, failures, probe_ms: probeInMs });
  return row!.is_new;
}

const closeItem = statement(
  'close-endpoint',
  `DELETE FROM endpoint
   WHERE address = $address AND next_probe_at <= now() + LEAST($within_ms::float8, 1e12) * interval '1 ms'
   RETURNING opened_at, reason, failures, (extract(epoch FROM now() - opened_at) * 1000)::float8 AS open_ms`,
);

/** An endpoint that is open no more. */
export interface ClosedEndpoint {
  openedAt: Date;
  reason: string;
  failures: number;
  /** Milliseconds. */
  openMs: number;
}

interface ClosedRow {
  opened_at: Date;
  reason: string;
  failures: number;
  open_ms: number;
}

/**
 * @param probeWithinMs it stays open where its next probe is later than that
 * @param also runs in the same transaction, if it was closed
 * @returns undefined: it was not open, or stays open
 */
export async function closeEndpoint(
  postgres: Postgres,
  address: string,
  probeWithinMs: number,
  also?: (query: Query, closed: ClosedEndpoint) => Promise<void>,
): Promise<ClosedEndpoint | undefined> {
  return postgres.transaction(async (query) => {
    const [row] = await query<ClosedRow & Record<string, unknown>>(closeItem, { address, within_ms: probeWithinMs });
    if (!row) return undefined;
    const closed = { openedAt: row.opened_at, reason: row.reason, failures: row.failures, openMs: row.open_ms };
    await also?.(query, closed);
    return closed;
  });
}

/** One of several processes that try gets it. */
const claimProbeItem = statement(
  'claim-probe',
  `UPDATE endpoint SET
     probes = probes + 1,
     probing_until = now() + $lease_ms * interval '1 ms',
     next_probe_at = now() + GREATEST(
       $shortest_ms * interval '1 ms', LEAST($longest_ms * interval '1 ms', (now() - opened_at) / $fraction::float8)
     )
   WHERE address = $address AND GREATEST(next_probe_at, probing_until) <= now() AND (
     $held_for::uuid IS NULL OR (
       SELECT d.subscription_id FROM delivery d
       WHERE d.subscription_id = $held_for AND d.state = 'held' AND d.held_for <> 'order' LIMIT 1
     ) IS NOT NULL
   )`,
);

/** The time from one probe to the next: a fraction of the time that the endpoint has been open, within bounds, or until the former has ended. */
export interface ProbePauses {
  shortestMs: number;
  longestMs: number;
  fraction: number;
  /** A probe that has not ended by then is taken for lost. */
  leaseMs: number;
}

/**
 * @param heldFor a subscription: only if a delivery is held for it; null: in any case
 * @returns true for one process each time that a probe is due
 */
export async function claimProbe(
  postgres: Postgres,
  address: string,
  heldFor: string | null,
  { shortestMs, longestMs, fraction, leaseMs }: ProbePauses,
): Promise<boolean> {
  const pauses = { shortest_ms: shortestMs, longest_ms: longestMs, fraction, lease_ms: leaseMs };
  const values = { address, held_for: heldFor, ...pauses };
  return (await postgres.affected(claimProbeItem, values)) > 0;
}

const endProbeItem = statement(
  'end-probe',
  `UPDATE endpoint SET probing_until = NULL, next_probe_at = GREATEST(next_probe_at, now() + $pause_ms * interval '1 ms')
   WHERE address = $address AND probing_until IS NOT NULL`,
);

/** The next one is due after its pause, which began with the claim, and not before `pauseMs` from now. */
export async function endProbe(postgres: Postgres, address: string, pauseMs: number): Promise<void> {
  await postgres.query(endProbeItem, { address, pause_ms: pauseMs });
}

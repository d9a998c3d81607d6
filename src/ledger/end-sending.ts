import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import { anySteadyFor, deadProcesses } from '../liveness/heartbeat.service.js';
import { keyOf, sameDelivery, type DeliveryKey, type KeyRow } from './delivery.js';
import { unknownCounted } from './ledger.counters.js';

/** For the operator who finds one unknown. */
export const sendingEnded = 'the worker ended, or could not report, after it had the right to send';

/**
 * Within that time of an outage, or of a jump of Postgres' clock, the workers that live have reported the calls that
 * ended meanwhile: a statement may have to reach its time limit first, and is repeated after two seconds at most.
 */
const haveReported = `$could_report::boolean AND ${anySteadyFor('$report_ms')}`;
/** With the 15 s of DATABASE_TIMEOUT that are the default, and with less: a worker may have another one. */
const leastReportMs = 20_000;
/** The pause, and the report itself. */
const afterAnswerMs = 4000;

/** For so long a worker may have to report, before the time of its claim counts. */
export const reportMs = ({ longestAnswerMs }: Postgres): number =>
  Math.max(leastReportMs, longestAnswerMs + afterAnswerMs);

/** Of claimed deliveries, those whose time is over after that moment. */
const claimedUntil = `state = 'sending' AND next_at >= to_timestamp($since_ms::float8 / 1000)`;

export const endSendingItems = statement(
  'end-sending',
  `WITH ended AS MATERIALIZED (
     SELECT notification_id, subscription_id FROM delivery
     WHERE ${claimedUntil} AND (next_at <= now() AND ${haveReported} OR process = ANY (${deadProcesses}))
     LIMIT $limit FOR UPDATE SKIP LOCKED
   )
   UPDATE delivery d SET
     state = 'unknown', held_for = NULL, next_at = NULL, process = NULL, ended_at = now(), last_error = '${sendingEnded}'
   FROM ended
   WHERE ${sameDelivery('ended')}
   RETURNING d.notification_id, d.subscription_id`,
);

/**
 * Ends at-most-once deliveries that were claimed, and whose process died or did not report in time, although it could:
 * it will never be known whether they arrived, so they are not sent again.
 * @param sinceMs milliseconds since 1970, by Postgres' clock: of claims that end after that
 * @param couldReport whether this process has found that others could write to the table, for as long as a report may
 *   take; otherwise only those of dead processes end
 * @returns which
 */
export async function endSending(
  postgres: Postgres,
  sinceMs: number,
  limit: number,
  couldReport: boolean,
): Promise<DeliveryKey[]> {
  const values = { since_ms: sinceMs, could_report: couldReport, report_ms: reportMs(postgres), limit };
  const rows = await postgres.query<KeyRow>(endSendingItems, values);
  unknownCounted.inc(rows.length);
  return rows.map(keyOf);
}

export const findUndecided = statement(
  'sending-undecided',
  `SELECT NOT (${haveReported}) AND EXISTS (
     SELECT FROM delivery WHERE ${claimedUntil} AND next_at <= now() AND process <> ALL (${deadProcesses})
   ) AS is_any`,
);

/**
 * Whether the time of claimed deliveries is over, while their processes may live and not have been able to report.
 * @param sinceMs as above
 * @param couldReport as above
 */
export async function anyUndecided(postgres: Postgres, sinceMs: number, couldReport: boolean): Promise<boolean> {
  const [row] = await postgres.query<{ is_any: boolean }>(findUndecided, {
    since_ms: sinceMs,
    could_report: couldReport,
    report_ms: reportMs(postgres),
  });
  return row!.is_any;
}

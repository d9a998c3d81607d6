import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Batcher } from '../infra/batcher.js';
import { isDataError } from '../infra/postgres/postgres-errors.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { rowsOf } from '../infra/postgres/statement.js';
import { OperationalEvents, type DeadState } from '../operational-events/operational-events.service.js';
import {
  inHandBounds,
  isDead,
  keyColumns,
  keyOf,
  nameOf,
  notificationIdOf,
  sameDelivery,
  type DeliveryKey,
  type KeyRow,
} from './delivery.js';
import { expiredCounted, unknownCounted } from './ledger.counters.js';
import { onEachDay, perDay } from './per-day.js';

/** One HTTP call, as it is kept for good. */
export interface Attempt {
  /** Counts from 1. */
  number: number;
  /** Milliseconds since 1970. */
  startedAt: number;
  /** Until it was known what came of it. */
  durationMs: number;
  /** Time that connecting took; null: an open connection was used, or none came about. */
  connectMs: number | null;
  /** From its start to the first byte of an answer; null: not one came. */
  firstByteMs: number | null;
  /** HTTP status, null when there was no answer. */
  status: number | null;
  /** Why it was no success. */
  error: string | null;
  /** Of an attempt that was no success, what helps to find out why. */
  details: AttemptDetails | null;
}

export interface AttemptDetails {
  /** `IP:port` that was called; null: it did not come to that. */
  address: string | null;
  /** Of the answer, those that help; null: there was none. */
  headers: Record<string, string> | null;
  /** The beginning of the answer's body; null: there was no answer. */
  body: string | null;
  /** There was no answer, and the receiver may have got the call all the same. */
  wasSent?: true;
}

/** The next state of a delivery, and the call that decided it. `attempt` is null where no call counts. */
export type Outcome =
  /**
   * The end, in each case. `failed`: refused for good, or no attempt is left. `expired`: no longer worth sending.
   * `cancelled`: the subscription is gone, or for the `reason` given. `unknown`: at most once, and it cannot be told
   * whether the one call arrived.
   */
  | { state: 'delivered' | 'failed' | 'expired' | 'cancelled' | 'unknown'; attempt: Attempt | null; reason?: string }
  /**
   * For its next attempt. Without `attempt`: our own stop ended the call, or none could be made for the `reason` given,
   * which costs the receiver none.
   */
  | { state: 'waiting'; attempt: Attempt | null; delayMs: number; reason?: string };

/** An outcome for the ledger. `delayMs` counts from when the ledger writes it. */
export type Settlement = DeliveryKey & {
  generation: number;
  /** `sending`: it was claimed before (at most once). A row in another state stays as it is, but for a success. */
  from: 'queued' | 'sending';
} & Outcome;

export const results = rowsOf<Settlement>('result', {
  ...keyColumns,
  generation: ['int', (item) => item.generation],
  from_state: ['text', (item) => item.from],
  state: ['text', (item) => item.state],
  delay_ms: ['int', (item) => ('delayMs' in item ? Math.ceil(item.delayMs) : null)],
  number: ['int', ({ attempt }) => attempt?.number ?? null],
  started_ms: ['float8', ({ attempt }) => attempt && attempt.startedAt],
  duration_ms: ['int', ({ attempt }) => attempt && Math.round(attempt.durationMs)],
  status: ['int', ({ attempt }) => attempt?.status ?? null],
  error: ['text', (item) => item.attempt?.error ?? ('reason' in item ? (item.reason ?? null) : null)],
  connect_ms: ['int', ({ attempt }) => wholeMs(attempt?.connectMs)],
  first_byte_ms: ['int', ({ attempt }) => wholeMs(attempt?.firstByteMs)],
  details: ['text', ({ attempt }) => (attempt?.details ? JSON.stringify(attempt.details) : null)],
});

const wholeMs = (ms: number | null | undefined): number | null =>
  ms === null || ms === undefined ? null : Math.round(ms);

/**
 * Writes results: the state where generation and former state still fit (a success always: delivered is delivered), and
 * the attempt in any case. The former state keeps a second message of a claimed delivery, which found no room, from
 * freeing it while it is being sent. Written twice it changes nothing the second time. Returns those that have become
 * dead letters by it.
 */
export const settleResults = perDay(
  'settle',
  (of) => `
    WITH result AS (
      SELECT notification_id, subscription_id, generation, from_state::delivery_state, state::delivery_state, delay_ms,
        number, to_timestamp(started_ms / 1000) AS started_at, duration_ms, status, error,
        connect_ms, first_byte_ms, details::json
      FROM ${results.from}
    ),
    attempts AS (
      INSERT INTO ${of('attempt')} (notification_id, subscription_id, generation, number, started_at, duration_ms, status, error,
        connect_ms, first_byte_ms, details)
      SELECT notification_id, subscription_id, generation, number, started_at, duration_ms, status, error,
        connect_ms, first_byte_ms, details
      FROM result WHERE number IS NOT NULL
      ON CONFLICT DO NOTHING
    ),
    changed AS (
      UPDATE ${of('delivery')} d SET
        state = r.state,
        attempts = GREATEST(d.attempts, coalesce(r.number, 0)),
        failures = d.failures + CASE WHEN r.number IS NOT NULL AND r.state <> 'delivered' THEN 1 ELSE 0 END,
        next_at = now() + r.delay_ms * interval '1 ms',
        process = NULL,
        held_for = NULL,
        last_status = CASE WHEN r.number IS NULL THEN d.last_status ELSE r.status END,
        last_error = CASE WHEN r.number IS NULL THEN coalesce(r.error, d.last_error) ELSE r.error END,
        ended_at = CASE WHEN r.delay_ms IS NULL THEN now() END
      FROM result r
      WHERE ${sameDelivery('r')}
        AND (r.state = 'delivered' AND d.state <> 'delivered' OR d.generation = r.generation AND d.state = r.from_state)
      RETURNING d.notification_id, d.subscription_id, d.state, d.last_error
    )
    SELECT notification_id, subscription_id, state, last_error FROM changed WHERE ${isDead()}`,
);

interface DeadRow extends KeyRow {
  state: DeadState;
  last_error: string | null;
}

/**
 * Writes results, those that arrive at the same time together. Each delivery that waits here keeps its place in its
 * worker, and a refusal is repeated by the worker: the bounds make it take no more, they never cost a result.
 */
@Injectable()
export class Settlements implements OnApplicationShutdown {
  private readonly batcher = new Batcher<Settlement, void>((batch) => this.settleTogether(batch), {
    maxItems: 512,
    lingerMs: 10,
    isolate: isDataError,
    ...inHandBounds,
  });

  constructor(
    private readonly postgres: Postgres,
    private readonly events: OperationalEvents,
  ) {}

  /** Resolves after the commit. */
  settle(settlement: Settlement): Promise<void> {
    return this.batcher.add(settlement);
  }

  /** Resolves when every settlement given so far is written, or refused. */
  drain(): Promise<void> {
    return this.batcher.drain();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.drain();
  }

  private async settleTogether(batch: Settlement[]): Promise<void[]> {
    // One statement can update a row only once: several results of one delivery are written one after the other.
    const seen = new Set<string>();
    const first: Settlement[] = [];
    const later: Settlement[] = [];
    for (const item of batch) {
      const key = nameOf(item);
      (seen.has(key) ? later : first).push(item);
      seen.add(key);
    }
    await onEachDay(first, notificationIdOf, async (day, items) => {
      // Each day by itself: where another one fails all are written again, and by then these have become dead letters
      // before.
      this.report(await this.postgres.query<DeadRow>(settleResults(day), results.bind(items)));
      return [];
    });
    if (later.length > 0) await this.settleTogether(later);
    return batch.map(() => undefined);
  }

  private report(dead: readonly DeadRow[]): void {
    for (const { state } of dead) if (state !== 'failed') (state === 'expired' ? expiredCounted : unknownCounted).inc();
    this.events.reportDead(dead.map((row) => ({ ...keyOf(row), state: row.state, reason: row.last_error })));
  }
}

import { Injectable } from '@nestjs/common';
import { Postgres } from '../infra/postgres/postgres.js';
import type { DeliveryKey, DeliveryState, HeldReason } from '../ledger/delivery.js';
import * as statements from './find-deliveries.js';

export interface KnownDelivery extends DeliveryKey {
  channel: string;
  acceptedAt: Date;
  state: DeliveryState;
  generation: number;
  /** HTTP calls made, all in all. */
  attempts: number;
  /** Failed calls that count for the retry schedule. */
  failures: number;
  /** Times an operator had it sent again after its end. */
  replays: number;
  /** Only while it waits. */
  nextAttemptAt: Date | null;
  /** Only while it is held. */
  heldFor: HeldReason | null;
  lastStatus: number | null;
  lastError: string | null;
  endedAt: Date | null;
}

export interface KnownAttempt {
  /** Counts from 1. */
  number: number;
  generation: number;
  startedAt: Date;
  durationMs: number;
  status: number | null;
  error: string | null;
}

/** Of the rows of a range, as many whole rows can be read and sorted in the time that it takes to search the range. */
const fewOfRange = 0.2;

export interface DeliveryPage {
  deliveries: KnownDelivery[];
  /** Where the list goes on; undefined at its end. */
  next: DeliveryKey | undefined;
}

/** Reads the ledger for people. Through TypeORM's pool, so that it uses no connection of the hot path. */
@Injectable()
export class DeliveryReader {
  constructor(private readonly postgres: Postgres) {}

  /**
   * Newest notification first. A page may be short, or empty, although `next` says that the list goes on: then a limited
   * range was searched, which contained no more of them.
   * @param rangeRows rows that one call searches where no index serves the filter: a few tens of milliseconds
   */
  async list(filter: statements.DeliveryFilter, limit: number, rangeRows = 50_000): Promise<DeliveryPage> {
    const bounds = await this.boundsOf(filter, rangeRows);
    // One more than asked for tells whether the list goes on.
    const rows = await this.run<DeliveryRow>(statements.page(filter, limit + 1, bounds));
    const deliveries = rows.slice(0, limit).map(toDelivery);
    return { deliveries, next: rows.length > limit ? deliveries.at(-1) : bounds.end };
  }

  async find(key: DeliveryKey): Promise<KnownDelivery | undefined> {
    const [row] = await this.run<DeliveryRow>(statements.one(key));
    return row && toDelivery(row);
  }

  async attemptsOf({ notificationId, subscriptionId }: DeliveryKey): Promise<KnownAttempt[]> {
    const rows = await this.run<AttemptRow>({ text: statements.attempts, values: [notificationId, subscriptionId] });
    return rows.map((row) => ({
      number: row.number,
      generation: row.generation,
      startedAt: row.started_at,
      durationMs: row.duration_ms,
      status: row.status,
      error: row.error,
    }));
  }

  /** What keeps the search for a page short. */
  private async boundsOf(
    filter: statements.DeliveryFilter,
    rangeRows: number,
  ): Promise<{ end?: DeliveryKey; few?: number }> {
    const route = statements.routeOf(filter);
    if (route === 'index') return {};
    if (route === 'few') {
      const few = Math.ceil(rangeRows * fewOfRange);
      const [row] = await this.run<{ yes: boolean }>({ text: statements.exceeds(filter.state!, few), values: [] });
      if (!row!.yes) return { few };
    }
    return { end: await this.endOfRange(filter, rangeRows) };
  }

  private async endOfRange(filter: statements.DeliveryFilter, rangeRows: number): Promise<DeliveryKey | undefined> {
    const [row] = await this.run<DeliveryRow>(statements.rangeEnd(filter, rangeRows));
    return row && { notificationId: row.notification_id, subscriptionId: row.subscription_id };
  }

  private run<R>({ text, values }: { text: string; values: unknown[] }): Promise<R[]> {
    return this.postgres.dataSource.query<R[]>(text, values);
  }
}

interface DeliveryRow {
  notification_id: string;
  subscription_id: string;
  channel: string;
  accepted_at: Date;
  state: DeliveryState;
  generation: number;
  attempts: number;
  failures: number;
  replays: number;
  next_attempt_at: Date | null;
  held_for: HeldReason | null;
  last_status: number | null;
  last_error: string | null;
  ended_at: Date | null;
}

interface AttemptRow {
  number: number;
  generation: number;
  started_at: Date;
  duration_ms: number;
  status: number | null;
  error: string | null;
}

function toDelivery(row: DeliveryRow): KnownDelivery {
  return {
    notificationId: row.notification_id,
    subscriptionId: row.subscription_id,
    channel: row.channel,
    acceptedAt: row.accepted_at,
    state: row.state,
    generation: row.generation,
    attempts: row.attempts,
    failures: row.failures,
    replays: row.replays,
    nextAttemptAt: row.next_attempt_at,
    heldFor: row.held_for,
    lastStatus: row.last_status,
    lastError: row.last_error,
    endedAt: row.ended_at,
  };
}

import { Injectable } from '@nestjs/common';
import { Postgres } from '../infra/postgres/postgres.js';
import { keyOf, type DeliveryKey, type DeliveryState, type HeldReason, type KeyRow } from '../ledger/delivery.js';
import type { Attempt, AttemptDetails } from '../ledger/settle.service.js';
import type { Criteria } from './criteria.js';
import * as statements from './find-deliveries.js';
import { LedgerSearch, type SearchBounds } from './search.service.js';

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
  /** When it was last held; it may have been released since. */
  heldSince: Date | null;
  /** While it is queued: when it was handed to the queue; null: it never was, or the queue is done with it. */
  queuedAt: Date | null;
  /** When it is no longer worth sending; null: never. */
  expiresAt: Date | null;
  lastStatus: number | null;
  lastError: string | null;
  endedAt: Date | null;
  /** The work of an operator that last sent it again, cancelled or closed it with others; null: none did. */
  replayId: string | null;
}

export interface KnownAttempt extends Omit<Attempt, 'startedAt'> {
  generation: number;
  startedAt: Date;
}

/** More are made of no delivery, unless an operator sends it again and again. */
const mostAttempts = 1000;

export interface DeliveryPage {
  deliveries: KnownDelivery[];
  /** Where the list goes on; undefined at its end. */
  next: DeliveryKey | undefined;
  /** The search stopped here, although the page is not full; undefined: it did not. */
  searchedTo: Date | undefined;
}

/** Reads the ledger for people. */
@Injectable()
export class DeliveryReader {
  constructor(
    private readonly postgres: Postgres,
    private readonly search: LedgerSearch,
  ) {}

  /**
   * Newest notification first. A page may be short, or empty, although `next` says that the list goes on: then a limited
   * range was searched, which contained no more of them.
   */
  async list(
    criteria: Criteria,
    after: DeliveryKey | undefined,
    limit: number,
    bounds?: SearchBounds,
  ): Promise<DeliveryPage> {
    const { keys, ...rest } = await this.search.find('delivery', criteria, after, limit, bounds);
    return { deliveries: await this.byKeys(keys), ...rest };
  }

  /** In the order of the lists. */
  async byKeys(keys: readonly DeliveryKey[]): Promise<KnownDelivery[]> {
    return keys.length === 0
      ? []
      : (await this.postgres.queryAside<DeliveryRow>(...statements.byKeys(keys))).map(toDelivery);
  }

  async find(key: DeliveryKey): Promise<KnownDelivery | undefined> {
    return (await this.byKeys([key]))[0];
  }

  async attemptsOf(key: DeliveryKey): Promise<KnownAttempt[]> {
    return (await this.attemptsOfEach([key])).map(({ attempt }) => attempt);
  }

  /** @param mostOfEach of each delivery, the latest */
  async attemptsOfEach(
    keys: readonly DeliveryKey[],
    mostOfEach = mostAttempts,
  ): Promise<{ key: DeliveryKey; attempt: KnownAttempt }[]> {
    if (keys.length === 0) return [];
    const rows = await this.postgres.queryAside<AttemptRow>(...statements.attemptsOf(keys, mostOfEach));
    return rows.map((row) => ({ key: keyOf(row), attempt: toAttempt(row) }));
  }
}

interface DeliveryRow extends KeyRow {
  channel: string;
  accepted_at: Date;
  state: DeliveryState;
  generation: number;
  attempts: number;
  failures: number;
  replays: number;
  next_attempt_at: Date | null;
  held_for: HeldReason | null;
  held_since: Date | null;
  queued_at: Date | null;
  expires_at: Date | null;
  last_status: number | null;
  last_error: string | null;
  ended_at: Date | null;
  replay_id: string | null;
}

interface AttemptRow extends KeyRow {
  number: number;
  generation: number;
  started_at: Date;
  duration_ms: number;
  connect_ms: number | null;
  first_byte_ms: number | null;
  status: number | null;
  error: string | null;
  details: AttemptDetails | null;
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
    heldSince: row.held_since,
    queuedAt: row.queued_at,
    expiresAt: row.expires_at,
    lastStatus: row.last_status,
    lastError: row.last_error,
    endedAt: row.ended_at,
    replayId: row.replay_id,
  };
}

const toAttempt = (row: AttemptRow): KnownAttempt => ({
  number: row.number,
  generation: row.generation,
  startedAt: row.started_at,
  durationMs: row.duration_ms,
  connectMs: row.connect_ms,
  firstByteMs: row.first_byte_ms,
  status: row.status,
  error: row.error,
  details: row.details,
});

import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Config } from '../config/config.module.js';
import { Batcher } from '../infra/batcher.js';
import { Heartbeat } from '../infra/postgres/heartbeat.service.js';
import { isDataError, isMissingPartition } from '../infra/postgres/postgres-errors.js';
import { Postgres, type Query, type Statement } from '../infra/postgres/postgres.js';
import { acceptOnTerms, type AcceptedOnTerms, type TermsAnswer } from './accept-on-terms.js';
import type { Accepted, HandOut } from './accepted.js';
import type { Delivery, DeliveryKey, DeliveryState, HandedOut, Settlement } from './delivery.js';
import { expiredCounted, unknownCounted } from './ledger.counters.js';
import { PartitionKeeper } from './partition-keeper.service.js';
import { replaceScheduled, type Replaced, type Replacement } from './replace-scheduled.js';
import * as statements from './statements.js';
import { sweepKeys } from './terms-statements.js';

/** Times are milliseconds by Postgres' clock: when the ledger handed the deliveries to the queue. */
export interface LaneProgress {
  lane: string;
  newestTaken: number;
  /** Of what was taken and is not acknowledged yet. */
  oldestInHand: number | null;
}

export interface Claimed {
  deliveries: (HandedOut & { isSlow: boolean })[];
  /** How many were due but no longer worth sending. */
  expired: number;
  /** At least the version any of them was matched with. */
  catalogueVersion: number;
  /** By Postgres' clock. */
  queuedAt: number;
}

/** Text above this size, in bytes, does not travel through the queue: a worker reads it from the ledger. */
export const longestTravellingBody = 8192;

/** For the way from the claim to the call and from the answer to the ledger, before an outcome counts as never learnt. */
const sendingSlackMs = 15_000;
const sweepTogether = 10_000;

interface KeyRow {
  notification_id: string;
  subscription_id: string;
}

/**
 * What is known of notifications and deliveries, and the only one who changes it. Every promise resolves after the commit.
 */
@Injectable()
export class Ledger {
  private readonly settlements = new Batcher<Settlement, void>((batch) => this.settleTogether(batch), {
    maxItems: 512,
    lingerMs: 10,
    isolate: isDataError,
  });

  private readonly claims = new Batcher<Delivery, boolean>((batch) => this.claimTogether(batch), {
    maxItems: 256,
    lingerMs: 1,
  });

  constructor(
    private readonly postgres: Postgres,
    private readonly partitions: PartitionKeeper,
    private readonly heartbeat: Heartbeat,
    private readonly config: Config,
  ) {}

  /**
   * Commits notifications with their deliveries in one statement.
   * @returns the catalogue version found, and the time of the commit; nothing was written unless it equals `version`
   */
  async accept(version: number, batch: Accepted[], handOut: HandOut): Promise<{ version: number; queuedAt: number }> {
    const numbers: number[] = [];
    const subscriptionIds: string[] = [];
    batch.forEach((item, index) => {
      for (const subscriptionId of item.subscriptionIds) {
        numbers.push(index + 1); // Postgres counts from 1
        subscriptionIds.push(subscriptionId);
      }
    });
    const values = [
      version,
      batch.map((item) => item.id),
      batch.map((item) => item.channel),
      batch.map((item) => item.publisher),
      batch.map((item) => item.body),
      numbers,
      subscriptionIds,
      handOut.state,
      handOut.state === 'queued' ? this.config.settings.DELIVERY_LEASE_MS : handOut.delayMs,
      handOut.state === 'queued' ? handOut.owner : null,
    ];
    return this.withPartitions(async () => {
      const [row] = await this.postgres.query<{ version: string; now_ms: string }>(statements.accept, values);
      return { version: Number(row!.version), queuedAt: Number(row!.now_ms) };
    });
  }

  /** Like `accept`, for notifications that must happen once, later, or only while they are fresh. */
  async acceptOnTerms(version: number, batch: AcceptedOnTerms[], handOut: HandOut): Promise<TermsAnswer> {
    const { DELIVERY_LEASE_MS } = this.config.settings;
    const accept = (query: Query) => acceptOnTerms(query, version, batch, handOut, DELIVERY_LEASE_MS);
    const isOneWrite = batch.every((item) => item.keys.length < 2);
    const answer = await this.withPartitions(() =>
      isOneWrite
        ? accept((statement, values) => this.postgres.query(statement, values))
        : this.postgres.transaction(accept),
    );
    const expired = answer.verdicts.map((verdict, index) =>
      verdict.kind === 'accepted' && verdict.handedTo === 'nobody' ? batch[index]!.subscriptionIds.length : 0,
    );
    expiredCounted.inc(expired.reduce((sum, count) => sum + count, 0));
    return answer;
  }

  /** Puts other content in the place of a scheduled notification, as long as none of it was sent. */
  replaceScheduled(version: number, replacement: Replacement): Promise<Replaced> {
    return this.postgres.transaction((query) => replaceScheduled(query, version, replacement));
  }

  /** Forgets the keys and the reports whose time is over. */
  async sweepKeys(): Promise<void> {
    for (;;) {
      const rows = await this.postgres.query(sweepKeys, [sweepTogether]);
      if (rows.length < sweepTogether) return;
    }
  }

  /** Writes a result, together with those that arrive at the same time. */
  settle(settlement: Settlement): Promise<void> {
    return this.settlements.add(settlement);
  }

  /** Resolves when every settlement given so far is written, or refused. */
  drain(): Promise<void> {
    return this.settlements.drain();
  }

  async claimDue(limit: number, owner: string | null): Promise<Claimed> {
    const rows = await this.postgres.query<{
      notification_id: string;
      subscription_id: string;
      generation: number;
      attempts: number;
      failures: number;
      replays: number;
      is_slow: boolean;
      is_expired: boolean;
      expires_ms: string | null;
      body: string | null;
      catalogue_version: string;
      now_ms: string;
    }>(statements.claimDue, [limit, this.config.settings.DELIVERY_LEASE_MS, owner, longestTravellingBody]);
    const claimed = rows.filter((row) => !row.is_expired);
    expiredCounted.inc(rows.length - claimed.length);
    return {
      deliveries: claimed.map((row) => ({
        notificationId: row.notification_id,
        subscriptionId: row.subscription_id,
        generation: row.generation,
        attempts: row.attempts,
        failures: row.failures,
        replays: row.replays,
        expiresAt: row.expires_ms === null ? null : Number(row.expires_ms),
        isSlow: row.is_slow,
        body: row.body,
      })),
      expired: rows.length - claimed.length,
      catalogueVersion: Number(rows[0]?.catalogue_version ?? 0),
      queuedAt: Number(rows[0]?.now_ms ?? 0),
    };
  }

  /** Of deliveries that came out of the queue late or twice, those that are still to be sent. */
  async stillQueued<D extends Delivery>(deliveries: D[]): Promise<D[]> {
    const rows = await this.postgres.query<KeyRow & { generation: number }>(statements.inspect, keysOf(deliveries));
    const found = new Set(rows.map((row) => `${row.notification_id}/${row.subscription_id}/${row.generation}`));
    return deliveries.filter(({ notificationId, subscriptionId, generation }) =>
      found.has(`${notificationId}/${subscriptionId}/${generation}`),
    );
  }

  /** The text to send of each notification, by id. */
  async bodies(notificationIds: string[]): Promise<Map<string, string>> {
    const rows = await this.postgres.query<{ id: string; body: string }>(statements.bodies, [
      notificationIds,
      ...boundsOf(notificationIds),
    ]);
    return new Map(rows.map((row) => [row.id, row.body]));
  }

  async putBack(deliveries: Delivery[], delayMs: number): Promise<void> {
    await this.onEach(statements.putBack, deliveries, delayMs);
  }

  async shortenLease(deliveries: Delivery[], delayMs: number): Promise<void> {
    await this.onEach(statements.shortenLease, deliveries, delayMs);
  }

  async own(deliveries: Delivery[], owner: string): Promise<void> {
    await this.onEach(statements.own, deliveries, owner);
  }

  /** The right to send an at-most-once delivery: true at most once for each of its generations. */
  claimSending(delivery: Delivery): Promise<boolean> {
    return this.claims.add(delivery);
  }

  /** @returns the at-most-once deliveries of which nobody will ever know whether they arrived */
  async endSending(): Promise<DeliveryKey[]> {
    const rows = await this.postgres.query<KeyRow>(statements.endSending, []);
    unknownCounted.inc(rows.length);
    return rows.map((row) => ({ notificationId: row.notification_id, subscriptionId: row.subscription_id }));
  }

  async freeOrphaned(): Promise<void> {
    await this.postgres.query(statements.freeOrphaned, []);
  }

  async hasEndedLease(): Promise<boolean> {
    const [row] = await this.postgres.query<{ yes: boolean }>(statements.hasEndedLease, []);
    return row!.yes;
  }

  /** @returns how many leases had ended, and how many of those deliveries the queue had lost */
  async endLeases(doneUpToMs: number, limit: number): Promise<{ ended: number; lost: number }> {
    const rows = await this.postgres.query<{ is_lost: boolean }>(statements.endLeases, [
      new Date(doneUpToMs),
      this.config.settings.DELIVERY_LEASE_MS,
      limit,
    ]);
    return { ended: rows.length, lost: rows.filter((row) => row.is_lost).length };
  }

  async freeQueued(beforeMs: number): Promise<void> {
    await this.postgres.query(statements.freeQueued, [new Date(beforeMs)]);
  }

  /** Tells the dispatchers how far this process is with the queue. */
  async recordProgress(progress: LaneProgress[]): Promise<void> {
    await this.postgres.query(statements.recordProgress, [
      progress.map((lane) => lane.lane),
      progress.map((lane) => lane.newestTaken),
      progress.map((lane) => lane.oldestInHand),
      this.heartbeat.processId,
    ]);
  }

  /** How far the workers are with each lane that any of them has taken from. */
  async readProgress(): Promise<LaneProgress[]> {
    const { DELIVERY_LEASE_MS } = this.config.settings;
    const rows = await this.postgres.query<{ lane: string; newest_ms: string; oldest_ms: string | null }>(
      statements.readProgress,
      [DELIVERY_LEASE_MS],
    );
    return rows.map((row) => ({
      lane: row.lane,
      newestTaken: Number(row.newest_ms),
      oldestInHand: row.oldest_ms === null ? null : Number(row.oldest_ms),
    }));
  }

  async retryNow(key: DeliveryKey): Promise<'retried' | 'not-found' | 'delivered'> {
    const values = [key.notificationId, key.subscriptionId];
    if (await this.postgres.affects(statements.retryNow, values)) return 'retried';
    const state = await this.stateOf(key);
    // Queued or being sent: what was asked for is about to happen.
    return state === undefined ? 'not-found' : state === 'delivered' ? 'delivered' : 'retried';
  }

  async cancel(key: DeliveryKey): Promise<'cancelled' | 'not-found' | 'ended'> {
    const values = [key.notificationId, key.subscriptionId];
    if (await this.postgres.affects(statements.cancel, values)) return 'cancelled';
    return (await this.stateOf(key)) === undefined ? 'not-found' : 'ended';
  }

  async failAllOfSubscription(manager: EntityManager, subscriptionId: string): Promise<void> {
    await manager.query(statements.failAllOfSubscription, [subscriptionId]);
  }

  async cancelAllOfSubscription(manager: EntityManager, subscriptionId: string): Promise<void> {
    await manager.query(statements.cancelAllOfSubscription, [subscriptionId]);
  }

  private async stateOf(key: DeliveryKey): Promise<DeliveryState | undefined> {
    const rows = await this.postgres.query<{ state: DeliveryState }>(statements.stateOf, [
      key.notificationId,
      key.subscriptionId,
    ]);
    return rows[0]?.state;
  }

  private async onEach(statement: Statement, deliveries: Delivery[], value: unknown): Promise<void> {
    await this.postgres.query(statement, [...keysOf(deliveries), value]);
  }

  private async withPartitions<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (!isMissingPartition(error)) throw error;
      await this.partitions.makeAhead(); // no dispatcher has run for a week
      return write();
    }
  }

  private async claimTogether(batch: Delivery[]): Promise<boolean[]> {
    const sendingMs = this.config.settings.NOTIFICATION_REQUESTS_TIMEOUT * 1000 + sendingSlackMs;
    const values = [...keysOf(batch), sendingMs, this.heartbeat.processId];
    const rows = await this.postgres.query<KeyRow & { generation: number }>(statements.claimSending, values);
    const granted = new Set(rows.map((row) => `${row.notification_id}/${row.subscription_id}/${row.generation}`));
    // Deleting grants it to one of several that ask for the same delivery together.
    return batch.map(({ notificationId, subscriptionId, generation }) =>
      granted.delete(`${notificationId}/${subscriptionId}/${generation}`),
    );
  }

  private async settleTogether(batch: Settlement[]): Promise<void[]> {
    // One statement changes a row once, in no order: several results of one delivery are written one after the other.
    const seen = new Set<string>();
    const first: Settlement[] = [];
    const later: Settlement[] = [];
    for (const item of batch) {
      const key = `${item.notificationId}/${item.subscriptionId}`;
      (seen.has(key) ? later : first).push(item);
      seen.add(key);
    }
    await this.writeSettlements(first);
    if (later.length > 0) await this.settleTogether(later);
    return batch.map(() => undefined);
  }

  private async writeSettlements(batch: Settlement[]): Promise<void> {
    const attempts = batch.map((item) => item.attempt);
    const values = [
      batch.map((item) => item.notificationId),
      batch.map((item) => item.subscriptionId),
      batch.map((item) => item.generation),
      batch.map((item) => item.state),
      batch.map((item) => ('delayMs' in item ? Math.ceil(item.delayMs) : null)),
      attempts.map((attempt) => attempt?.number ?? null),
      attempts.map((attempt) => (attempt ? new Date(attempt.startedAt) : null)),
      attempts.map((attempt) => (attempt ? Math.round(attempt.durationMs) : null)),
      attempts.map((attempt) => attempt?.status ?? null),
      attempts.map((attempt) => attempt?.error ?? null),
      batch.map((item) => item.isClaimed ?? false),
    ];
    await this.postgres.query(statements.settle, values);
    const count = (state: DeliveryState) => batch.filter((item) => item.state === state).length;
    expiredCounted.inc(count('expired'));
    unknownCounted.inc(count('unknown'));
  }
}

function keysOf(deliveries: Delivery[]): [string[], string[], number[]] {
  return [
    deliveries.map((delivery) => delivery.notificationId),
    deliveries.map((delivery) => delivery.subscriptionId),
    deliveries.map((delivery) => delivery.generation),
  ];
}

/** Lowest and highest id: as text they sort as Postgres sorts them. */
function boundsOf(ids: string[]): [string, string] {
  let min = ids[0]!;
  let max = min;
  for (const id of ids) {
    if (id < min) min = id;
    if (id > max) max = id;
  }
  return [min, max];
}

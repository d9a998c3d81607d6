import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Config } from '../config/config.module.js';
import { Batcher } from '../infra/batcher.js';
import { Heartbeat } from '../infra/postgres/heartbeat.service.js';
import { isDataError, isMissingPartition } from '../infra/postgres/postgres-errors.js';
import { Postgres, type Query } from '../infra/postgres/postgres.js';
import { acceptOnTerms, type AcceptedOnTerms, type TermsAnswer } from './accept-on-terms.js';
import type { Accepted, HandOut } from './accepted.js';
import { generationOf, generationsIn, keysOf, type KeyRow } from './delivery-keys.js';
import type { Delivery, DeliveryKey, DeliveryState, Settlement } from './delivery.js';
import { expiredCounted, unknownCounted } from './ledger.counters.js';
import { PartitionKeeper } from './partition-keeper.service.js';
import { replaceScheduled, type Replaced, type Replacement } from './replace-scheduled.js';
import * as statements from './statements.js';
import { sweepKeys } from './terms-statements.js';

/** For the way from the claim to the call and from the answer to the ledger, before an outcome counts as never learnt. */
const sendingSlackMs = 15_000;
const sweepTogether = 10_000;

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

  /** The text to send of each notification, by id. */
  async bodies(notificationIds: string[]): Promise<Map<string, string>> {
    const rows = await this.postgres.query<{ id: string; body: string }>(statements.bodies, [
      notificationIds,
      ...boundsOf(notificationIds),
    ]);
    return new Map(rows.map((row) => [row.id, row.body]));
  }

  /** The right to send an at-most-once delivery: true at most once for each of its generations. */
  claimSending(delivery: Delivery): Promise<boolean> {
    return this.claims.add(delivery);
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
    const granted = generationsIn(rows);
    // Deleting grants it to one of several that ask for the same delivery together.
    return batch.map((delivery) => granted.delete(generationOf(delivery)));
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
    const rows = await this.postgres.query<{ state: 'expired' | 'unknown'; count: number }>(statements.settle, values);
    for (const { state, count } of rows) (state === 'expired' ? expiredCounted : unknownCounted).inc(count);
  }
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

import { Injectable } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { Heartbeat } from '../infra/postgres/heartbeat.service.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { generationOf, generationsIn, keysOf, type KeyRow } from './delivery-keys.js';
import { longestTravellingBody, type Delivery, type DeliveryKey, type HandedOut } from './delivery.js';
import * as statements from './lease-statements.js';
import { unknownCounted } from './ledger.counters.js';

/** Times are milliseconds by Postgres' clock: when the ledger handed the deliveries to the queue. */
export interface LaneProgress {
  lane: string;
  newestTaken: number;
  /** Of what was taken and is not acknowledged yet. */
  oldestInHand: number | null;
}

/** Workers report every second. The rest is for the broker: to miss a dead one, and to give to others what it had. */
const progressCountsMs = 20_000;

export interface Claimed {
  deliveries: (HandedOut & { isSlow: boolean })[];
  /** At least the version any of them was matched with. */
  catalogueVersion: number;
  /** By Postgres' clock. */
  queuedAt: number;
}

/**
 * Who has which delivery in hand, and until when: whatever is handed out is lent, and comes back by itself. The dispatcher's
 * side of the ledger, and that of whoever must give something back. Every promise resolves after the commit.
 */
@Injectable()
export class Leases {
  constructor(
    private readonly postgres: Postgres,
    private readonly heartbeat: Heartbeat,
    private readonly config: Config,
  ) {}

  async claimDue(limit: number, owner: string | null): Promise<Claimed> {
    const rows = await this.postgres.query<{
      notification_id: string;
      subscription_id: string;
      generation: number;
      attempts: number;
      failures: number;
      replays: number;
      is_slow: boolean;
      expires_ms: string | null;
      body: string | null;
      catalogue_version: string;
      now_ms: string;
    }>(statements.claimDue, [limit, this.config.settings.DELIVERY_LEASE_MS, owner, longestTravellingBody]);
    return {
      deliveries: rows.map((row) => ({
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
      catalogueVersion: Number(rows[0]?.catalogue_version ?? 0),
      queuedAt: Number(rows[0]?.now_ms ?? 0),
    };
  }

  /** Of deliveries that came out of the queue late or twice, those that are still to be sent. */
  async stillQueued<D extends Delivery>(deliveries: D[]): Promise<D[]> {
    const rows = await this.postgres.query<KeyRow & { generation: number }>(statements.inspect, keysOf(deliveries));
    const found = generationsIn(rows);
    return deliveries.filter((delivery) => found.has(generationOf(delivery)));
  }

  async putBack(deliveries: Delivery[], delayMs: number): Promise<void> {
    await this.postgres.query(statements.putBack, [...keysOf(deliveries), delayMs]);
  }

  /** From now on this process looks after them. */
  async shortenLease(deliveries: Delivery[], delayMs: number): Promise<void> {
    const values = [...keysOf(deliveries), delayMs, this.heartbeat.processId];
    await this.postgres.query(statements.shortenLease, values);
  }

  async own(deliveries: Delivery[], owner: string): Promise<void> {
    await this.postgres.query(statements.own, [...keysOf(deliveries), owner]);
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

  /** @returns how many */
  async freeQueued(beforeMs: number): Promise<number> {
    const [row] = await this.postgres.query<{ count: number }>(statements.freeQueued, [new Date(beforeMs)]);
    return row!.count;
  }

  /** @returns when the first process after `afterMs` died without a word, by Postgres' clock; undefined: none did */
  async deathAfter(afterMs: number): Promise<number | undefined> {
    const [row] = await this.postgres.query<{ died_ms: number | null }>(statements.deathAfter, [afterMs]);
    return row!.died_ms ?? undefined;
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
    const rows = await this.postgres.query<{ lane: string; newest_ms: string; oldest_ms: string | null }>(
      statements.readProgress,
      [progressCountsMs],
    );
    return rows.map((row) => ({
      lane: row.lane,
      newestTaken: Number(row.newest_ms),
      oldestInHand: row.oldest_ms === null ? null : Number(row.oldest_ms),
    }));
  }

  /** Forgets processes long gone, and how far they were. */
  async sweepProcesses(): Promise<void> {
    await this.postgres.query(statements.sweepProcesses, [progressCountsMs]);
  }
}

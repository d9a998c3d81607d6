import { Injectable, Logger } from '@nestjs/common';
import { Config } from '../config/config.module.js';
import { isMissingPartition } from '../infra/postgres/postgres-errors.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { createPartition, dayOfPartition, partitionsBetween } from './partitions.js';

const dayMs = 86_400_000;
/** Yesterday for a publisher's clock that is behind, a week ahead for a dispatcher that is down over a holiday. */
const daysBehind = 1;
const daysAhead = 7;
/**
 * Both need the whole table for an instant. Behind a query that runs for long they would wait, and everything that accepts
 * or delivers would wait behind them; there is a week to try again.
 */
const giveUpSoon = "SET LOCAL lock_timeout = '2s'";
/**
 * CREATE … IF NOT EXISTS still fails when two processes run it at the same time. Waits for the others without giving up: each
 * of them does, and several processes may start together on a slow machine. The number is arbitrary.
 */
const oneAtATime = 'SELECT pg_advisory_xact_lock(727273)';

/** Makes the partitions of the days to come, and drops those whose time is over. Any number of processes may. */
@Injectable()
export class PartitionKeeper {
  private readonly logger = new Logger(PartitionKeeper.name);

  constructor(
    private readonly postgres: Postgres,
    private readonly config: Config,
  ) {}

  /** Must have run before anything is accepted. */
  async makeAhead(): Promise<void> {
    const now = await this.ledgerNow();
    const wanted = partitionsBetween(now - daysBehind * dayMs, now + daysAhead * dayMs);
    const existing = new Set(await this.existing());
    const missing = wanted.filter((partition) => !existing.has(partition.name));
    if (missing.length === 0) return;
    await this.postgres.upkeep.transaction(async (manager) => {
      await manager.query(oneAtATime);
      await manager.query(giveUpSoon);
      for (const partition of missing) await manager.query(createPartition(partition));
    });
    this.logger.log({ event: 'ledger.partitions-made', partitions: missing.map((partition) => partition.name) });
  }

  /** Writes, and once more with the partitions made, when one was missing: no dispatcher has run for a week. */
  async withPartitions<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (!isMissingPartition(error)) throw error;
      await this.makeAhead();
      return write();
    }
  }

  /** Drops the days past retention in which every delivery has ended. A day with an unfinished one is kept whole. */
  async dropExpired(): Promise<void> {
    const oldest = (await this.ledgerNow()) - this.config.settings.RETENTION_DAYS * dayMs;
    const names = (await this.existing()).filter((name) => {
      const day = dayOfPartition(name);
      return day !== undefined && day + dayMs < oldest;
    });
    for (const stamp of new Set(names.map((name) => name.slice(name.lastIndexOf('_') + 1)))) {
      const dropped = await this.postgres.upkeep.transaction(async (manager) => {
        await manager.query(oneAtATime);
        await manager.query(giveUpSoon);
        // One look for each index of what is unfinished: together they would be served by none, and read the whole day.
        const [unfinished] = (await manager.query(
          `SELECT EXISTS (SELECT FROM delivery_${stamp} WHERE state IN ('waiting', 'held'))
             OR EXISTS (SELECT FROM delivery_${stamp} WHERE state = 'queued')
             OR EXISTS (SELECT FROM delivery_${stamp} WHERE state = 'sending') AS yes`,
        )) as { yes: boolean }[];
        if (unfinished!.yes) return false;
        await manager.query(`DROP TABLE IF EXISTS attempt_${stamp}, delivery_${stamp}, notification_${stamp}`);
        return true;
      });
      this.logger.log({ event: dropped ? 'ledger.day-dropped' : 'ledger.day-kept-unfinished', day: stamp });
    }
  }

  /** PGlite has no autovacuum: without this, every look for what is due would wade through what is over. */
  async vacuumEmbedded(): Promise<void> {
    if (!this.postgres.isEmbedded) return;
    await this.postgres.upkeep.query('VACUUM (ANALYZE) notification, delivery, attempt, once_key, idempotency_key');
  }

  private async ledgerNow(): Promise<number> {
    const [row] = (await this.postgres.dataSource.query(
      'SELECT (extract(epoch FROM now()) * 1000)::bigint AS now_ms',
    )) as { now_ms: string }[];
    return Number(row!.now_ms);
  }

  private async existing(): Promise<string[]> {
    const rows = (await this.postgres.dataSource.query(
      `SELECT child.relname AS name FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
       WHERE inhparent IN ('notification'::regclass, 'delivery'::regclass, 'attempt'::regclass)`,
    )) as { name: string }[];
    return rows.map((row) => row.name);
  }
}

import { Injectable, Logger } from '@nestjs/common';
import { Config } from '../config/config.module.js';
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
    await this.postgres.dataSource.transaction(async (manager) => {
      await manager.query(giveUpSoon);
      // CREATE ... IF NOT EXISTS still fails when two processes run it at the same moment.
      await manager.query('SELECT pg_advisory_xact_lock(727273)');
      for (const partition of missing) await manager.query(createPartition(partition));
    });
    this.logger.log({ event: 'ledger.partitions-made', partitions: missing.map((partition) => partition.name) });
  }

  /** Drops the days past retention in which every delivery has ended. A day with an unfinished one is kept whole. */
  async dropExpired(): Promise<void> {
    const oldest = (await this.ledgerNow()) - this.config.settings.RETENTION_DAYS * dayMs;
    const names = (await this.existing()).filter((name) => {
      const day = dayOfPartition(name);
      return day !== undefined && day + dayMs < oldest;
    });
    for (const stamp of new Set(names.map((name) => name.slice(name.lastIndexOf('_') + 1)))) {
      const dropped = await this.postgres.dataSource.transaction(async (manager) => {
        await manager.query(giveUpSoon);
        await manager.query('SELECT pg_advisory_xact_lock(727273)');
        const [unfinished] = (await manager.query(
          `SELECT EXISTS (SELECT FROM delivery_${stamp} WHERE state IN ('queued', 'waiting', 'held', 'sending')) AS yes`,
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
    await this.postgres.dataSource.query(
      'VACUUM (ANALYZE) notification, delivery, attempt, request_key, idempotency_key',
    );
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

import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { advisoryLocks } from '../infra/postgres/advisory-locks.js';
import { isMissingPartition } from '../infra/postgres/postgres-errors.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { createPartition, dayMs, partitionsBetween, type Partition } from './partitions.js';
import { onDay } from './per-day.js';

/** Yesterday for a publisher's clock that is behind, a week ahead for a dispatcher that is down over a holiday. */
const daysBehind = 1;
const daysAhead = 7;
/** Attaching waits for nobody but another process that changes the partitions; there is a week to try again. */
const giveUpSoon = "SET LOCAL lock_timeout = '2s'";
/**
 * Waits for the others without giving up: each of them makes partitions, and several processes may start together on a
 * slow machine.
 */
const oneAtATime = `SELECT pg_advisory_xact_lock(${advisoryLocks.partitions})`;

interface TableToVacuum {
  /** Quoted where it has to be. */
  name: string;
  wants_vacuum: boolean;
  wants_analyze: boolean;
}

/**
 * Uses the counts that PostgreSQL's autovacuum uses, with the share of dead rows that is set for `delivery` on a server
 * (partitions.ts). PostgreSQL's own catalogues get and lose rows with the partitions of each day; an ANALYZE of its
 * statistics does nothing.
 */
const tablesToVacuum = `
  SELECT relid::regclass::text AS name, wants_vacuum, wants_analyze
  FROM pg_stat_all_tables CROSS JOIN LATERAL (
    SELECT n_dead_tup > 500 + 0.02 * n_live_tup OR n_ins_since_vacuum > 1000 + 0.2 * n_live_tup AS wants_vacuum,
      relid <> 'pg_statistic'::regclass AND n_mod_since_analyze > 500 + 0.1 * n_live_tup AS wants_analyze
  ) AS wanted
  WHERE schemaname <> 'pg_toast' AND (wants_vacuum OR wants_analyze)`;

/** Makes the partitions of the days to come. Any number of processes may. */
@Injectable()
export class PartitionKeeper {
  private readonly logger = new Logger(PartitionKeeper.name);

  constructor(private readonly postgres: Postgres) {}

  /** Must have run before anything is accepted. */
  async makeAhead(): Promise<void> {
    const now = await this.ledgerNow();
    const wanted = partitionsBetween(now - daysBehind * dayMs, now + daysAhead * dayMs);
    if ((await this.missingOf(wanted, this.postgres.dataSource)).length === 0) return;
    const made = await this.postgres.upkeep.transaction(async (manager) => {
      await manager.query(oneAtATime);
      await manager.query(giveUpSoon);
      const missing = await this.missingOf(wanted, manager);
      for (const partition of missing) await manager.query(createPartition(partition));
      return missing;
    });
    if (made.length > 0)
      this.logger.log({ event: 'ledger.partitions-made', partitions: made.map((partition) => partition.name) });
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

  /**
   * PGlite has no autovacuum: without this, every look for what is due would wade through what is over. A vacuum blocks
   * the thread of this process: so each table has its own, and only where enough of its rows have changed. It freezes
   * what it comes by, which is in memory and soon to be written anyway: freezing a whole day months later would write
   * all of it to the log (infra/postgres/freeze-embedded.ts).
   */
  async vacuumEmbedded(): Promise<void> {
    if (!this.postgres.isEmbedded) return;
    const { upkeep } = this.postgres;
    for (const { name, wants_vacuum, wants_analyze } of (await upkeep.query(tablesToVacuum)) as TableToVacuum[]) {
      // One that is dropped meanwhile needs neither.
      if (wants_vacuum) await onDay(upkeep.query(`VACUUM (FREEZE) ${name}`), undefined);
      if (wants_analyze) await onDay(upkeep.query(`ANALYZE ${name}`), undefined);
    }
  }

  private async ledgerNow(): Promise<number> {
    const [row] = (await this.postgres.dataSource.query(
      'SELECT (extract(epoch FROM now()) * 1000)::bigint AS now_ms',
    )) as { now_ms: string }[];
    return Number(row!.now_ms);
  }

  private async missingOf(wanted: Partition[], database: Pick<EntityManager, 'query'>): Promise<Partition[]> {
    const rows = (await database.query(
      `SELECT child.relname AS name FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
       WHERE inhparent IN ('notification'::regclass, 'delivery'::regclass, 'attempt'::regclass)`,
    )) as { name: string }[];
    const existing = new Set(rows.map((row) => row.name));
    return wanted.filter((partition) => !existing.has(partition.name));
  }
}

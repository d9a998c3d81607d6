import { once } from 'node:events';
import type pg from 'pg';
import type { DataSource } from 'typeorm';
import { hasNoConnectionLeft } from './postgres-errors.js';
import type { TimeLimits } from './time-limits.js';

/**
 * The check itself waits no longer (src/health): one that a lock keeps waiting must not have the next look wait as
 * well. The server alone keeps to it, since a process on a slow machine may wait longer for an answer, above all when
 * it starts.
 */
const [longestStatementMs, longestLockMs] = [2000, 1000];
/** For one of the hot path to be given back. Less, so that the check still says why its own is not there. */
const longestWaitMs = 1000;

/** For SET, or SET LOCAL. */
export const endChecksSoon = ({ statement, lock }: TimeLimits, set: 'SET' | 'SET LOCAL' = 'SET'): string =>
  `${set} statement_timeout = ${Math.min(statement, longestStatementMs)}; ${set} lock_timeout = ${Math.min(lock, longestLockMs)}`;

/**
 * For health checks alone: a connection for which no other work stands in line. A process whose other connections are
 * all in use is busy, not broken. Nor is one broken that accepts and delivers over those that it has, while Postgres
 * gives no more: where this one cannot be made for that, one of the hot path is asked.
 */
export class Checks {
  /** Why one of the hot path was asked the last time; undefined: it was not. */
  refusal: unknown;

  constructor(
    private readonly own: DataSource,
    private readonly hot: pg.Pool,
    private readonly limits: TimeLimits,
  ) {}

  /** @returns the rows; only for a SELECT, as of an UPDATE or DELETE TypeORM does not return the rows alone */
  async query<Rows>(text: string, values: unknown[] = []): Promise<Rows> {
    try {
      const rows = await this.own.query<Rows>(text, values);
      this.refusal = undefined;
      return rows;
    } catch (error) {
      if (!hasNoConnectionLeft(error)) throw error;
      const rows = await this.askHot(text, values, error);
      this.refusal = error;
      return rows as Rows;
    }
  }

  private async askHot(text: string, values: unknown[], refusal: unknown): Promise<object[]> {
    const since = performance.now();
    const client = await this.freeOfHot(AbortSignal.timeout(longestWaitMs));
    if (performance.now() - since > longestStatementMs) {
      client.release(); // it stood in line behind publications, and nobody waits for the answer any more
      throw refusal;
    }
    client.on('error', ignore);
    try {
      await client.query(`BEGIN; ${endChecksSoon(this.limits, 'SET LOCAL')}`);
      const { rows } = await client.query<Record<string, unknown>>(text, values);
      await client.query('COMMIT');
      return rows;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => client.end());
      throw error;
    } finally {
      client.off('error', ignore);
      client.release();
    }
  }

  /** Where none is free, and there could be more, the pool tries to make one: as vainly as it was tried here. */
  private async freeOfHot(late: AbortSignal): Promise<pg.PoolClient> {
    for (;;) {
      try {
        return await this.hot.connect();
      } catch (error) {
        if (!hasNoConnectionLeft(error) || this.hot.totalCount === 0 || late.aborted) throw error;
        if (this.hot.idleCount > 0) continue;
        // It rejects as well where one of the pool breaks.
        await once(this.hot, 'release', { signal: late }).catch(() => {});
        if (late.aborted) throw error;
      }
    }
  }
}

function ignore(): void {}

import { Injectable, Logger, type BeforeApplicationShutdown, type OnApplicationBootstrap } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { Config } from '../config/config.module.js';
import type { Role } from '../config/settings.js';
import { Clock } from '../infra/clock.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';

const intervalMs = 2000;
/** Four beats may be lost before other processes free the deliveries that this one had in hand. */
const lifetimeMs = 10_000;

const beat = statement(
  'heartbeat',
  `INSERT INTO process (id, roles, expires_at) VALUES ($id, $roles, now() + $lifetime_ms * interval '1 ms')
   ON CONFLICT (id) DO UPDATE SET expires_at = EXCLUDED.expires_at
   RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms`,
);
const end = statement('process-ended', 'DELETE FROM process WHERE id = $id');
const endAll = statement('processes-ended', 'DELETE FROM process');
/** A process that is not in the table is as dead as one whose row has expired. */
const sweep = statement('sweep-processes', `DELETE FROM process WHERE expires_at <= now() - interval '1 hour'`);

/** Tells the other processes, through the table `process`, that this one is alive, and learns Postgres' time by it. */
@Injectable()
export class Heartbeat implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly processId = randomUUID();
  private readonly logger = new Logger(Heartbeat.name);
  private timer: NodeJS.Timeout | undefined;
  private offsetMs = 0;

  constructor(
    private readonly postgres: Postgres,
    private readonly config: Config,
    private readonly clock: Clock,
  ) {}

  /** Milliseconds since 1970 by Postgres' clock, which all processes share; their own clocks may differ. */
  ledgerNow(): number {
    return this.clock.now() + this.offsetMs;
  }

  async onApplicationBootstrap(): Promise<void> {
    // The directory lock proves that no other process is alive: the deliveries the last one had in hand are free at once.
    if (this.postgres.isEmbedded) await this.postgres.query(endAll);
    await this.beat();
    this.timer = setInterval(() => {
      this.beat().catch((error: unknown) => this.logger.warn({ event: 'heartbeat.failed', error }));
    }, intervalMs).unref();
  }

  /** Runs when this process has nothing in hand any more, and before the database is closed. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.stop().catch((error: unknown) => {
      this.logger.warn({ event: 'heartbeat.failed', error }); // its row expires, only later
    });
  }

  /** Ends the heartbeat: deliveries that this process still had may be handed out again at once. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.postgres.query(end, { id: this.processId });
  }

  /** Whether any process with that role is alive. For health checks, so it uses TypeORM's pool. */
  async isAlive(role: Role): Promise<boolean> {
    const alive = await this.postgres.dataSource.query<unknown[]>(
      'SELECT FROM process WHERE $1 = ANY (roles) AND expires_at > now() LIMIT 1',
      [role],
    );
    return alive.length > 0;
  }

  /** Removes the rows of processes that ended long ago. */
  async sweep(): Promise<void> {
    await this.postgres.query(sweep);
  }

  private async beat(): Promise<void> {
    const before = this.clock.now();
    const [row] = await this.postgres.query<{ now_ms: string }>(beat, {
      id: this.processId,
      roles: this.config.settings.ROLES,
      lifetime_ms: lifetimeMs,
    });
    this.offsetMs = Number(row!.now_ms) - (before + this.clock.now()) / 2;
  }
}

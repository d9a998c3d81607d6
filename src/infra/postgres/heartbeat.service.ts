import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { Config } from '../../config/config.module.js';
import { Clock } from '../clock.js';
import { Postgres } from './postgres.js';

const intervalMs = 2000;
/** Four beats may be lost before others take over what this process had in hand. */
const livesMs = 10_000;

/** Tells the other processes, through the table `process`, that this one is alive, and learns Postgres' time doing so. */
@Injectable()
export class Heartbeat implements OnApplicationBootstrap {
  readonly processId = randomUUID();
  private readonly logger = new Logger(Heartbeat.name);
  private timer: NodeJS.Timeout | undefined;
  private offsetMs = 0;

  constructor(
    private readonly postgres: Postgres,
    private readonly config: Config,
    private readonly clock: Clock,
  ) {}

  /** Milliseconds since 1970 by Postgres' clock, which every process shares, whatever its own clock says. */
  ledgerNow(): number {
    return this.clock.now() + this.offsetMs;
  }

  async onApplicationBootstrap(): Promise<void> {
    if (this.postgres.isEmbedded) {
      // The directory lock says that no other process is alive: what the last one had in hand is free at once.
      await this.postgres.query({ name: 'processes-gone', text: 'DELETE FROM process' }, []);
    }
    await this.beat();
    this.timer = setInterval(() => {
      this.beat().catch((error: unknown) => this.logger.warn({ event: 'heartbeat.failed', error }));
    }, intervalMs).unref();
  }

  /** The last beat, when nothing is in hand any more: what was given up others may take over at once. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.postgres.query({ name: 'process-gone', text: 'DELETE FROM process WHERE id = $1' }, [this.processId]);
  }

  private async beat(): Promise<void> {
    const before = this.clock.now();
    const rows = await this.postgres.query<{ now_ms: string }>(
      {
        name: 'heartbeat',
        text: `
          INSERT INTO process (id, roles, expires_at) VALUES ($1, $2, now() + $3 * interval '1 ms')
          ON CONFLICT (id) DO UPDATE SET expires_at = EXCLUDED.expires_at
          RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms`,
      },
      [this.processId, this.config.settings.ROLES, livesMs],
    );
    this.offsetMs = Number(rows[0]!.now_ms) - (before + this.clock.now()) / 2;
  }
}

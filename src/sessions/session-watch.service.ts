import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Postgres } from '../infra/postgres/postgres.js';
import { valuesOf } from '../infra/postgres/statement.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { findStanding } from './session-rows.js';

const lookEveryMs = 5000;

/** Tells of the ends of sessions, by whichever process they were ended: one look for all that are watched, none where none is. */
@Injectable()
export class SessionWatch implements OnModuleDestroy {
  private readonly logger = new Logger(SessionWatch.name);
  /** By the hash of the token. */
  private readonly watched = new Map<string, Set<() => void>>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly postgres: Postgres,
    private readonly heartbeat: Heartbeat,
  ) {}

  onModuleDestroy(): void {
    clearInterval(this.timer);
  }

  /** @returns to be called when nobody needs to know any more */
  add(hash: string, ended: () => void): () => void {
    const listeners = this.watched.get(hash) ?? new Set();
    listeners.add(ended);
    this.watched.set(hash, listeners);
    this.timer ??= setInterval(() => void this.look(), lookEveryMs).unref();
    return () => {
      listeners.delete(ended);
      if (listeners.size === 0 && this.watched.get(hash) === listeners) this.remove(hash);
    };
  }

  end(hash: string): void {
    const listeners = this.watched.get(hash);
    this.remove(hash);
    listeners?.forEach((ended) => ended());
  }

  async look(): Promise<void> {
    const hashes = [...this.watched.keys()];
    if (hashes.length === 0) return;
    try {
      const now = new Date(this.heartbeat.ledgerNow()).toISOString();
      const rows = await this.postgres.dataSource.query<{ token_hash: string }[]>(
        findStanding.text,
        valuesOf(findStanding, { token_hashes: hashes, now }),
      );
      const standing = new Set(rows.map((row) => row.token_hash));
      for (const hash of hashes) if (!standing.has(hash)) this.end(hash);
    } catch (error) {
      this.logger.warn({ event: 'sessions.not-read', error });
    }
  }

  private remove(hash: string): void {
    this.watched.delete(hash);
    if (this.watched.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

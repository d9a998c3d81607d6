import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { findStanding, sessionOf, type SessionRow } from './session-rows.js';
import type { Session } from './session.js';

const lookEveryMs = 5000;

interface Watched {
  isGood: (session: Session) => boolean;
  listeners: Set<() => void>;
}

/**
 * Tells of the ends of sessions, by whichever process they were ended: one look for all that are watched, none where
 * none is.
 */
@Injectable()
export class SessionWatch implements OnModuleDestroy {
  private readonly logger = new Logger(SessionWatch.name);
  /** By the hash of the token. */
  private readonly watched = new Map<string, Watched>();
  private timer: NodeJS.Timeout | undefined;
  private readonly looks = new RepeatedFailures(this.logger, {
    failed: { event: 'sessions.not-read' },
    worksAgain: { event: 'sessions.read-again' },
  });

  constructor(
    private readonly postgres: Postgres,
    private readonly ledgerClock: LedgerClock,
  ) {}

  onModuleDestroy(): void {
    clearInterval(this.timer);
  }

  /**
   * @param isGood whether what the user of a session that has not ended signed in with still counts
   * @returns to be called when nobody needs to know any more
   */
  add(hash: string, isGood: (session: Session) => boolean, ended: () => void): () => void {
    const watched = this.watched.get(hash) ?? { isGood, listeners: new Set() };
    watched.listeners.add(ended);
    this.watched.set(hash, watched);
    this.timer ??= setInterval(() => void this.look(), lookEveryMs).unref();
    return () => {
      watched.listeners.delete(ended);
      if (watched.listeners.size === 0 && this.watched.get(hash) === watched) this.remove(hash);
    };
  }

  end(hash: string): void {
    const watched = this.watched.get(hash);
    this.remove(hash);
    watched?.listeners.forEach((ended) => ended());
  }

  async look(): Promise<void> {
    const hashes = [...this.watched.keys()];
    if (hashes.length === 0) return;
    try {
      const now = new Date(this.ledgerClock.now()).toISOString();
      const values = { token_hashes: hashes, now };
      const rows = await this.postgres.queryAside<SessionRow & { token_hash: string }>(findStanding, values);
      const standing = new Map(rows.map((row) => [row.token_hash, sessionOf(row)]));
      for (const hash of hashes) {
        const session = standing.get(hash);
        if (!session || this.watched.get(hash)?.isGood(session) === false) this.end(hash);
      }
      this.looks.worked();
    } catch (error) {
      this.looks.failed(error);
    }
  }

  private remove(hash: string): void {
    this.watched.delete(hash);
    if (this.watched.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

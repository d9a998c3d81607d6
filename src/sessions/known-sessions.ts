import { LRUCache } from 'lru-cache';
import type { Application } from '../auth/application.js';
import type { LedgerClock } from '../liveness/ledger-clock.service.js';
import type { Session } from './session.js';

/** A session that was ended by another process is over here so much later at most. */
const freshMs = 3000;
const most = 10_000;

interface Known {
  session: Session;
  lookedAt: number;
  /** The application with whose secret the user signed in, as it was when the signature was checked. */
  application: Application | undefined;
}

/** Sessions that this process has seen, by the hashes of their tokens. */
export class KnownSessions {
  private readonly standing = new LRUCache<string, Known>({ max: most });
  /** No token is ever given twice, so one that has no session never gets one. */
  private readonly over = new LRUCache<string, true>({ max: most });

  constructor(private readonly ledgerClock: LedgerClock) {}

  /** Whether its session was seen, though it may have ended since. */
  has(hash: string): boolean {
    return this.standing.has(hash);
  }

  isOver(hash: string): boolean {
    return this.over.has(hash);
  }

  /** Undefined: the ledger has to be asked. */
  fresh(hash: string): Known | undefined {
    const known = this.standing.get(hash);
    if (!known) return undefined;
    const now = this.ledgerClock.now();
    const ageMs = now - known.lookedAt;
    // Below zero: the clock was set back, and it could have ended for as long as that.
    return ageMs >= 0 && ageMs < freshMs && now < known.session.endsAt ? known : undefined;
  }

  keep(hash: string, session: Session, application: Application | undefined): void {
    // It was ended while the ledger was asked.
    if (this.over.has(hash)) return;
    this.standing.set(hash, { session, application, lookedAt: this.ledgerClock.now() });
  }

  end(hash: string): void {
    this.standing.delete(hash);
    this.over.set(hash, true);
  }

  /** All of one user, or of everybody. */
  endAll(userId?: string): void {
    for (const [hash, { session }] of this.standing.entries()) {
      if (userId === undefined || session.id === userId) this.end(hash);
    }
  }
}

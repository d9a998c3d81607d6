import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { lowestIdAt } from '../ledger/partitions.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import * as statements from './find-fetched.js';

const intervalMs = 500;
/**
 * From the making of an id to the commit of its notification, as a rule. A notification that takes longer is found when
 * a wait ends.
 */
const usualAgeMs = 2000;
const mostArrivals = 10_000;

/** Somebody who waits for deliveries of a subscription. */
export interface Waiting {
  /** Resolves when there may be something new, or the time is over, or waiting has no sense any more. */
  wait(ms: number, left: AbortSignal): Promise<void>;
  leave(): void;
}

/** Wakes those who wait, by one look into the ledger for all of them: none while nobody waits. */
@Injectable()
export class Arrivals implements OnModuleDestroy {
  private readonly logger = new Logger(Arrivals.name);
  private readonly bySubscription = new Map<string, Set<Bell>>();
  private count = 0;
  private told: ReadonlySet<string> = new Set();
  private timer: NodeJS.Timeout | undefined;
  private readonly looks = new RepeatedFailures(this.logger, {
    failed: { event: 'pull.arrivals-not-read' },
    worksAgain: { event: 'pull.arrivals-read-again' },
  });
  private readonly stopping = new AbortController();

  constructor(
    private readonly postgres: Postgres,
    private readonly ledgerClock: LedgerClock,
  ) {}

  /** The process is about to end: nobody is to wait any more. */
  get isStopping(): boolean {
    return this.stopping.signal.aborted;
  }

  onModuleDestroy(): void {
    this.stopping.abort();
    clearTimeout(this.timer);
    for (const bells of this.bySubscription.values()) for (const bell of bells) bell.ring();
  }

  /** A notification that is committed from now on rings. */
  join(subscriptionId: string): Waiting {
    const bells = this.bySubscription.get(subscriptionId) ?? new Set();
    const bell = new Bell();
    this.bySubscription.set(subscriptionId, bells.add(bell));
    this.count++;
    this.lookLater();
    return {
      wait: (ms, left) => (this.isStopping ? Promise.resolve() : bell.wait(ms, left)),
      leave: () => {
        if (!bells.delete(bell)) return;
        this.count--;
        if (bells.size === 0) this.bySubscription.delete(subscriptionId);
      },
    };
  }

  private lookLater(): void {
    if (this.timer || this.isStopping || this.count === 0) return;
    this.timer = setTimeout(() => void this.look(), intervalMs).unref();
  }

  private async look(): Promise<void> {
    try {
      const rows = this.count === 0 ? [] : await this.read();
      const keys = rows.map((row) => `${row.notification_id}/${row.subscription_id}`);
      rows.forEach((row, nr) => {
        if (!this.told.has(keys[nr]!)) this.bySubscription.get(row.subscription_id)?.forEach((bell) => bell.ring());
      });
      this.told = new Set(keys);
      if (this.count > 0) this.looks.worked();
    } catch (error) {
      this.looks.failed(error);
    }
    this.timer = undefined;
    this.lookLater();
  }

  private read(): Promise<{ notification_id: string; subscription_id: string }[]> {
    const values = {
      after: lowestIdAt(this.ledgerClock.now() - usualAgeMs),
      subscriptions: [...this.bySubscription.keys()],
      limit: mostArrivals,
    };
    return this.postgres.queryAside(statements.arrivals, values);
  }
}

/** Remembers that it was rung until somebody has waited for it. */
class Bell {
  private isRung = false;
  private heard: (() => void) | undefined;

  ring(): void {
    this.isRung = true;
    this.heard?.();
  }

  async wait(ms: number, left: AbortSignal): Promise<void> {
    if (!this.isRung && !left.aborted) {
      await new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timer);
          left.removeEventListener('abort', end);
          this.heard = undefined;
          resolve();
        };
        const timer = setTimeout(end, ms);
        left.addEventListener('abort', end);
        this.heard = end;
      });
    }
    this.isRung = false;
  }
}

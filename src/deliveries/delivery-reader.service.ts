import { Injectable } from '@nestjs/common';
import { Postgres } from '../infra/postgres/postgres.js';
import { notificationIdOf, type DeliveryKey, type DeliveryState, type HeldReason } from '../ledger/delivery.js';
import { onEachDay } from '../ledger/per-day.js';
import type { Attempt } from '../ledger/settle.service.js';
import type { Criteria } from './criteria.js';
import * as statements from './find-deliveries.js';
import { LedgerSearch, type SearchBounds } from './search.service.js';

export interface KnownDelivery extends DeliveryKey {
  channel: string;
  acceptedAt: Date;
  state: DeliveryState;
  generation: number;
  /** HTTP calls made, all in all. */
  attempts: number;
  /** Failed calls that count for the retry schedule. */
  failures: number;
  /** Times an operator had it sent again after its end. */
  replays: number;
  /** Only while it waits. */
  nextAttemptAt: Date | null;
  /** Only while it is held. */
  heldFor: HeldReason | null;
  /** When it was last held; it may have been released since. */
  heldSince: Date | null;
  /** While it is queued: when it was handed to the queue; null: it never was, or the queue is done with it. */
  queuedAt: Date | null;
  /** When it is no longer worth sending; null: never. */
  expiresAt: Date | null;
  lastStatus: number | null;
  lastError: string | null;
  endedAt: Date | null;
  /** The work of an operator that last sent it again, cancelled or closed it with others; null: none did. */
  replayId: string | null;
}

export interface KnownAttempt extends Omit<Attempt, 'startedAt'> {
  generation: number;
  startedAt: Date;
}

/** More are made of no delivery, unless an operator sends it again and again. */
const mostAttempts = 1000;
/** Deliveries whose attempts one statement measures: to do so, Postgres unpacks all that receivers answered. */
const measuredTogether = 50;

export interface DeliveryPage {
  deliveries: KnownDelivery[];
  /** Where the list goes on; undefined at its end. */
  next: DeliveryKey | undefined;
  /** The search stopped here, although the page is not full; undefined: it did not. */
  searchedTo: Date | undefined;
}

/** Reads the ledger for people. */
@Injectable()
export class DeliveryReader {
  constructor(
    private readonly postgres: Postgres,
    private readonly search: LedgerSearch,
  ) {}

  /**
   * Newest notification first. A page may be short, or empty, although `next` says that the list goes on: then a
   * limited range was searched, which contained no more of them.
   */
  async list(
    criteria: Criteria,
    after: DeliveryKey | undefined,
    limit: number,
    bounds?: SearchBounds,
  ): Promise<DeliveryPage> {
    const { keys, ...rest } = await this.search.find('delivery', criteria, after, limit, bounds);
    return { deliveries: await this.byKeys(keys), ...rest };
  }

  /** In the order of the lists. */
  async byKeys(keys: readonly DeliveryKey[]): Promise<KnownDelivery[]> {
    return keys.length === 0 ? [] : this.postgres.queryAside<KnownDelivery>(...statements.byKeys(keys));
  }

  async find(key: DeliveryKey): Promise<KnownDelivery | undefined> {
    return (await this.byKeys([key]))[0];
  }

  async attemptsOf(key: DeliveryKey): Promise<KnownAttempt[]> {
    return (await this.attemptsOfEach([key])).map(({ attempt }) => attempt);
  }

  /**
   * @param keys of one notification
   * @param mostOfEach of each delivery, the latest
   * @returns how many of them, one at least, until what `attemptsOfEach` reads comes to so many bytes
   */
  async countUntilFull(keys: readonly DeliveryKey[], mostOfEach: number, bytes: number): Promise<number> {
    let [count, sum] = [0, 0];
    while (count < keys.length && sum < bytes) {
      const lengths = await onEachDay(keys.slice(count, count + measuredTogether), notificationIdOf, (day, ofDay) =>
        this.postgres.queryAside<{ bytes: number }>(...statements.lengthsOf(day, ofDay, mostOfEach)),
      );
      // Their day was dropped meanwhile: nothing is left to be read.
      if (lengths.length === 0) return keys.length;
      for (const { bytes: more } of lengths) {
        if (sum >= bytes) break;
        sum += more;
        count += 1;
      }
    }
    return count;
  }

  /** @param mostOfEach of each delivery, the latest */
  async attemptsOfEach(
    keys: readonly DeliveryKey[],
    mostOfEach = mostAttempts,
  ): Promise<{ key: DeliveryKey; attempt: KnownAttempt }[]> {
    const found = await onEachDay(keys, notificationIdOf, (day, ofDay) =>
      this.postgres.queryAside<DeliveryKey & KnownAttempt>(...statements.attemptsOf(day, ofDay, mostOfEach)),
    );
    return found.map(({ notificationId, subscriptionId, ...attempt }) => ({
      key: { notificationId, subscriptionId },
      attempt,
    }));
  }
}

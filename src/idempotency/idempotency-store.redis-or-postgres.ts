import { Logger } from '@nestjs/common';
import { ReplyError } from 'ioredis';
import type { Postgres } from '../infra/postgres/postgres.js';
import { IdempotencyStore, type LockAnswer, type LockRequest, type Sealed } from './idempotency-store.js';
import { PostgresIdempotencyStore } from './idempotency-store.postgres.js';
import type { RedisIdempotencyStore } from './idempotency-store.redis.js';
import { outageTimes, storeInUse, type StoreInUse } from './redis-outage.js';

type StoreName = StoreInUse['store'];

/** A lock that this process holds. */
interface Held {
  request: LockRequest;
  store: StoreName;
  /** Redis may have this lock as well. */
  isAlsoInRedis: boolean;
}

/**
 * Locks and seals in Redis, and in Postgres while a process cannot use Redis (docs/decisions/0022).
 *
 *   in Redis ──reported──▶ pause ──▶ in Postgres ──no report for a while──▶ pause ──▶ in Redis
 *
 * The ledger's database says where locks are, for all processes together. During a pause, which is longer than a process believes
 * what it saw, no lock is given, and processes bring the locks they hold to the other store: at any time a delivery is locked in
 * one store only. Seals stay where they are, so the other store is read as well, as long as it has any and can be read.
 */
export class RedisOrPostgresIdempotencyStore extends IdempotencyStore {
  private readonly logger = new Logger('Idempotency');
  private readonly stores: { redis: RedisIdempotencyStore; postgres: PostgresIdempotencyStore };
  private readonly held = new Map<string, Held>(); // by token
  /** Tokens of calls that Redis did not answer: it may have given them the lock. */
  private readonly unanswered = new Set<string>();
  /** Locks that Redis may still have and nobody needs, by token. */
  private readonly leftInRedis = new Map<string, string>();
  private seen: StoreInUse = { store: 'redis', isOpen: false, hasKeysInPostgres: false };
  private seenAt = -Infinity;
  private looking: Promise<void> | undefined;
  private bringing: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    redis: RedisIdempotencyStore,
    private readonly database: Postgres,
    private readonly times = outageTimes,
  ) {
    super();
    this.stores = { redis, postgres: new PostgresIdempotencyStore(database) };
  }

  async announce(): Promise<void> {
    await this.stores.redis.announce();
    await this.look();
    this.timer = setInterval(() => void this.look(), this.times.lookEvery).unref();
  }

  async withdraw(): Promise<void> {
    clearInterval(this.timer);
    await this.looking;
    await this.stores.redis.withdraw();
  }

  async acquire(request: LockRequest): Promise<LockAnswer> {
    const { key, token } = request;
    const name = this.seen.store;
    if (!this.isOpen(name)) throw new StoreChanges();
    const store = this.stores[name];
    const answer = await store.acquire(request).catch((error: unknown) => {
      if (name === 'redis') this.unanswered.add(token);
      throw error;
    });
    const isAlsoInRedis = this.unanswered.delete(token) && name === 'postgres';
    if (answer.kind !== 'acquired') {
      if (isAlsoInRedis) this.leftInRedis.set(token, key);
      return answer;
    }
    const sealed = await this.sealInOther(name, key);
    // The answer may have come when locks were already being brought to the other store: without this one.
    if (!sealed && !this.isOpen(name)) {
      if (name === 'redis') this.unanswered.add(token);
      throw new StoreChanges();
    }
    this.held.set(token, { request, store: name, isAlsoInRedis });
    if (!sealed) return answer;
    await this.release(key, token);
    return sealed;
  }

  extend(key: string, token: string, ttlMs: number): Promise<boolean> {
    return this.storeOf(token).extend(key, token, ttlMs);
  }

  seal(key: string, token: string, outcome: unknown, keepMs: number): Promise<boolean> {
    return this.end(key, token, (store) => store.seal(key, token, outcome, keepMs));
  }

  release(key: string, token: string): Promise<boolean> {
    return this.end(key, token, (store) => store.release(key, token));
  }

  sweep(stopping: AbortSignal): Promise<void> {
    return this.stores.postgres.sweep(stopping);
  }

  private isOpen(name: StoreName): boolean {
    const isBelieved = performance.now() - this.seenAt < this.times.believed;
    return isBelieved && this.seen.isOpen && this.seen.store === name;
  }

  private storeOf(token: string): IdempotencyStore {
    return this.stores[this.held.get(token)?.store ?? this.seen.store];
  }

  private async end(
    key: string,
    token: string,
    write: (store: IdempotencyStore) => Promise<boolean>,
  ): Promise<boolean> {
    const store = this.storeOf(token);
    if (this.held.get(token)?.isAlsoInRedis) this.leftInRedis.set(token, key);
    this.held.delete(token);
    try {
      return await write(store);
    } catch (error) {
      if (store === this.stores.redis) this.leftInRedis.set(token, key);
      throw error;
    }
  }

  /** A seal that was written before locks were brought to `name`. What a Redis that does not answer has is lost with it. */
  private async sealInOther(name: StoreName, key: string): Promise<Sealed | undefined> {
    const { redis, postgres } = this.stores;
    if (name === 'redis') return this.seen.hasKeysInPostgres ? postgres.sealOf(key) : undefined;
    if (!redis.answers) return undefined;
    return redis.sealOf(key).catch((error: unknown) => {
      if (!(error instanceof ReplyError)) throw error; // to be asked again, unless it does not answer any more
      this.logger.warn({ event: 'idempotency.seal-not-read', key, error });
      return undefined;
    });
  }

  private look(): Promise<void> {
    return (this.looking ??= this.lookOnce().finally(() => (this.looking = undefined)));
  }

  private async lookOnce(): Promise<void> {
    const startedAt = performance.now();
    const { failingSince } = this.stores.redis;
    const mustReport = failingSince !== undefined && startedAt - failingSince >= this.times.reportAfter;
    try {
      const seen = await storeInUse(this.database, this.times, mustReport);
      if (seen.store !== this.seen.store) this.logger.warn({ event: 'idempotency.store-changed', store: seen.store });
      this.seen = seen;
      this.seenAt = startedAt;
    } catch (error) {
      this.logger.warn({ event: 'idempotency.store-not-seen', error });
      return;
    }
    this.bringing ??= this.bringLocks(this.seen.store).finally(() => (this.bringing = undefined));
  }

  private async bringLocks(to: StoreName): Promise<void> {
    const others = [...this.held.values()].filter(({ store }) => store !== to);
    const left = to === 'redis' ? [...this.leftInRedis] : [];
    const brought = await Promise.allSettled([
      ...others.map((held) => this.bring(held, to)),
      ...left.map(([token, key]) => this.releaseInRedis(token, key)),
    ]);
    const failed = brought.filter(({ status }) => status === 'rejected');
    // The next look tries again.
    if (failed.length > 0)
      this.logger.warn({ event: 'idempotency.locks-not-brought', store: to, count: failed.length });
  }

  private async bring(held: Held, to: StoreName): Promise<void> {
    const { key, token } = held.request;
    const from = held.store;
    // Where another process has it already, extending this lock will say so.
    await this.stores[to].acquire(held.request);
    held.store = to;
    held.isAlsoInRedis = to === 'postgres';
    if (from === 'postgres') await this.stores.postgres.release(key, token);
    // It was sealed or released in the meantime, in the store where it was then.
    if (!this.held.has(token)) await this.stores[to].release(key, token);
  }

  private async releaseInRedis(token: string, key: string): Promise<void> {
    await this.stores.redis.release(key, token);
    this.leftInRedis.delete(token);
  }
}

/** Locks are on their way from one store to the other, or this process cannot see where they are. To be asked again. */
export class StoreChanges extends Error {
  constructor() {
    super('no lock is given at the moment: it is not certain where locks are');
  }
}

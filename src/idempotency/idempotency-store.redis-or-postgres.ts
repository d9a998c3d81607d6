import { Logger } from '@nestjs/common';
import { ReplyError } from 'ioredis';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { IdempotencyStore, type LockAnswer, type LockRequest, type Sealed } from './idempotency-store.js';
import { PostgresIdempotencyStore } from './idempotency-store.postgres.js';
import type { RedisIdempotencyStore } from './idempotency-store.redis.js';
import { outageTimes, storeInUse, type StoreInUse } from './redis-outage.js';

type StoreName = StoreInUse['store'];

/** A lock of this process. */
interface OwnLock {
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
 * The ledger's database says where locks are, for all processes together. During a pause, which is longer than a
 * process believes what it saw, no lock is given, and processes bring the locks they hold to the other store: at any
 * time a delivery is locked in one store only. Seals stay where they are, so the other store is read as well, as long
 * as it holds seals and can be read.
 */
export class RedisOrPostgresIdempotencyStore extends IdempotencyStore {
  private readonly logger = new Logger('Idempotency');
  private readonly stores: { redis: RedisIdempotencyStore; postgres: PostgresIdempotencyStore };
  private readonly locks = new Map<string, OwnLock>(); // by token
  /** Tokens to which Redis may have given a lock, of calls that are under way or ended in an error. */
  private readonly perhapsInRedis = new Set<string>();
  /** Keys of locks that a store may still have and nobody was given, or needs any more, by token. */
  private readonly left = { redis: new Map<string, string>(), postgres: new Map<string, string>() };
  private seen: StoreInUse = { store: 'redis', isOpen: false, hasKeysInPostgres: false };
  private seenAt = -Infinity;
  private changeSeenAt = -Infinity;
  private looking: Promise<void> | undefined;
  private bringing: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private readonly looks = new RepeatedFailures(this.logger, {
    failed: { event: 'idempotency.store-not-seen' },
    worksAgain: { event: 'idempotency.store-seen-again' },
  });

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

  forget(process: string): Promise<void> {
    return this.stores.redis.forget(process);
  }

  async acquire(request: LockRequest): Promise<LockAnswer> {
    const { key, token } = request;
    const name = this.seen.store;
    if (!this.isOpen(name)) throw new StoreChanges();
    // Forgotten only when this call ends well: the caller's next one, in Postgres perhaps, must know it.
    if (name === 'redis') this.perhapsInRedis.add(token);
    const { answer, sealed } = await this.ask(name, request);
    if (name === 'postgres') this.left.postgres.delete(token);
    const isAlsoInRedis = this.perhapsInRedis.delete(token) && name === 'postgres';
    if (answer.kind !== 'acquired') {
      if (isAlsoInRedis) this.left.redis.set(token, key);
      return answer;
    }
    this.locks.set(token, { request, store: name, isAlsoInRedis });
    if (!sealed) return answer;
    await this.release(key, token);
    return sealed;
  }

  extend(key: string, token: string, ttlMs: number): Promise<boolean> {
    return this.stores[this.whereIs(token).store].extend(key, token, ttlMs);
  }

  async seal(key: string, token: string, outcome: unknown, keepMs: number): Promise<boolean> {
    const { store, isAlsoInRedis } = this.whereIs(token);
    this.locks.delete(token);
    // A lock that gets no seal is left to its TTL, wherever it is: nothing else would stop a repeated message.
    const isSealed = await this.stores[store].seal(key, token, outcome, keepMs);
    if (isAlsoInRedis) this.left.redis.set(token, key);
    return isSealed;
  }

  async release(key: string, token: string): Promise<boolean> {
    const { store, isAlsoInRedis } = this.whereIs(token);
    this.locks.delete(token);
    if (isAlsoInRedis) this.left.redis.set(token, key);
    try {
      return await this.stores[store].release(key, token);
    } catch (error) {
      if (store === 'redis') this.left.redis.set(token, key);
      throw error;
    }
  }

  sweep(sinceMs: number, limit: number): Promise<number> {
    return this.stores.postgres.sweep(sinceMs, limit);
  }

  private async ask(name: StoreName, request: LockRequest): Promise<{ answer: LockAnswer; sealed?: Sealed }> {
    try {
      const answer = await this.stores[name].acquire(request);
      if (answer.kind !== 'acquired') return { answer };
      const sealed = this.mayBeSealedInOther(name) ? await this.sealInOther(name, request.key) : undefined;
      if (sealed) return { answer, sealed };
      // The answer may have come when locks were already being brought to the other store: without this one.
      if (!this.isOpen(name)) throw new StoreChanges();
      return { answer };
    } catch (error) {
      // Nobody was given this lock. If Redis gives it to another process, that one must be able to bring it to Postgres
      // later.
      if (name === 'postgres') this.left.postgres.set(request.token, request.key);
      throw error;
    }
  }

  private isOpen(name: StoreName): boolean {
    const now = performance.now();
    const isBelieved = now - this.seenAt < this.times.believed;
    // Postgres' clock may have been set, and the pause be over at once. No other process believes the former store any
    // longer now.
    const isKnownToAll = now - this.changeSeenAt >= this.times.believed;
    return isBelieved && isKnownToAll && this.seen.isOpen && this.seen.store === name;
  }

  private whereIs(token: string): Pick<OwnLock, 'store' | 'isAlsoInRedis'> {
    return this.locks.get(token) ?? { store: this.seen.store, isAlsoInRedis: false };
  }

  /** The seals of a Redis that does not answer are lost with it. */
  private mayBeSealedInOther(name: StoreName): boolean {
    return name === 'redis' ? this.seen.hasKeysInPostgres : this.stores.redis.answers;
  }

  /** A seal that was written before locks were brought to `name`. */
  private sealInOther(name: StoreName, key: string): Promise<Sealed | undefined> {
    const { redis, postgres } = this.stores;
    if (name === 'redis') return postgres.sealOf(key);
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
    const { failingSince, failure } = this.stores.redis;
    const mustReport = failingSince !== undefined && startedAt - failingSince >= this.times.reportAfter;
    try {
      const seen = await storeInUse(this.database, this.times, mustReport);
      if (seen.store !== this.seen.store) {
        const reason = mustReport ? { error: failure } : {};
        this.logger.warn({ event: 'idempotency.store-changed', store: seen.store, ...reason });
        // At the first look this process has no lock, and has seen no change.
        if (this.seenAt > -Infinity) this.changeSeenAt = performance.now();
      }
      this.seen = seen;
      this.seenAt = startedAt;
    } catch (error) {
      return this.looks.failed(error);
    }
    this.looks.worked();
    this.bringing ??= this.bringLocks(this.seen.store).finally(() => (this.bringing = undefined));
  }

  private async bringLocks(to: StoreName): Promise<void> {
    const others = [...this.locks.values()].filter(({ store }) => store !== to);
    const left = [
      ...(to === 'redis' ? this.leftIn('redis') : []), // it cannot be asked before locks are on their way back to it
      ...(to === 'redis' || !this.seen.isOpen ? this.leftIn('postgres') : []), // as long as none is given there
    ];
    const brought = await Promise.allSettled([
      ...others.map((lock) => this.bring(lock, to)),
      ...left
        // A later call was given this lock, which is being brought.
        .filter(({ store, token }) => store !== to || !this.locks.has(token))
        .map(({ store, token, key }) => this.releaseLeft(store, token, key)),
    ]);
    const failed = brought.filter(({ status }) => status === 'rejected');
    // The next look tries again.
    if (failed.length > 0)
      this.logger.warn({ event: 'idempotency.locks-not-brought', store: to, count: failed.length });
  }

  private async bring(lock: OwnLock, to: StoreName): Promise<void> {
    const { key, token } = lock.request;
    const from = lock.store;
    const answer = await this.stores[to].acquire(lock.request);
    // Before the first lock is given here, only one that was left behind can be in the way: its process releases it,
    // and the next look tries again. Afterwards another process has the key, and extending this lock will say so.
    if (answer.kind === 'locked' && !this.seen.isOpen) return;
    lock.store = to;
    lock.isAlsoInRedis = to === 'postgres';
    if (from === 'postgres') await this.stores.postgres.release(key, token);
    // It was sealed or released in the meantime, in the store where it was then.
    if (!this.locks.has(token)) await this.stores[to].release(key, token);
  }

  private leftIn(store: StoreName) {
    return [...this.left[store]].map(([token, key]) => ({ store, token, key }));
  }

  private async releaseLeft(store: StoreName, token: string, key: string): Promise<void> {
    await this.stores[store].release(key, token);
    this.left[store].delete(token);
  }
}

/** Locks are on their way from one store to the other, or this process cannot see where they are. To be asked again. */
export class StoreChanges extends Error {
  constructor() {
    super('no lock is given at the moment: it is not certain where locks are');
  }
}

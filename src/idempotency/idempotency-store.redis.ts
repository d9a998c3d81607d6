import { Logger } from '@nestjs/common';
import { ReplyError, type Redis } from 'ioredis';
import { Batcher } from '../infra/batcher.js';
import {
  holderOf,
  IdempotencyStore,
  keysBounds,
  type LockAnswer,
  type LockRequest,
  type Sealed,
} from './idempotency-store.js';
import { livenessOf, tryLocking, withScripts, type WithScripts } from './lock-scripts.redis.js';

interface LockChange {
  key: string;
  token: string;
  verb: 'seal' | 'extend' | 'release';
  ttlMs: number;
  outcome: string;
}

/**
 * Milliseconds. `silentAfter`: longer than an answer may take, and than a connection that broke needs to be replaced.
 */
const livenessTimes = { beatEvery: 1500, silentAfter: 5000 };
const batching = { ...keysBounds, maxItems: 256, lingerMs: 1, concurrency: 2 };

export class RedisIdempotencyStore extends IdempotencyStore {
  private readonly logger = new Logger('RedisIdempotencyStore');
  private readonly redis: WithScripts;
  private readonly acquiring = new Batcher<LockRequest, LockAnswer>((batch) => this.acquireTogether(batch), batching);
  private readonly changing = new Batcher<LockChange, boolean>((batch) => this.changeTogether(batch), batching);
  private readonly reading = new Batcher<string, Sealed | undefined>((keys) => this.readTogether(keys), batching);
  private timer: NodeJS.Timeout | undefined;
  /**
   * By `performance.now()`: the start of the first sign of life that failed and was followed by none that succeeded.
   */
  failingSince: number | undefined;
  /** Why the last sign of life failed. */
  failure: unknown;
  private answeredAt = -Infinity;

  constructor(
    redis: Redis,
    private readonly processId: string,
    private readonly times = livenessTimes,
  ) {
    super();
    this.redis = withScripts(redis);
  }

  async announce(): Promise<void> {
    // After an outage or a flush of Redis this process counts as alive again with its next beat.
    this.redis.on('ready', () => void this.beat());
    this.timer = setInterval(() => void this.beat(), this.times.beatEvery).unref();
    await this.beat();
  }

  async withdraw(): Promise<void> {
    clearInterval(this.timer);
    await this.forget(this.processId);
  }

  async forget(process: string): Promise<void> {
    await this.redis.del(livenessOf(process)).catch((error: unknown) => {
      this.logger.debug({ event: 'redis.liveness-failed', error }); // then it expires
    });
  }

  /** Whether Redis answers, if only to refuse: full or read-only, it can still be read. */
  get answers(): boolean {
    return performance.now() - this.answeredAt < this.times.silentAfter;
  }

  /** Also a trial: what keeps Redis from doing this keeps it from giving locks. */
  private async beat(): Promise<void> {
    const began = performance.now();
    try {
      await tryLocking(this.redis, this.processId);
      this.failingSince = undefined;
      this.answeredAt = performance.now();
    } catch (error) {
      this.failingSince ??= began;
      this.failure = error;
      if (error instanceof ReplyError) this.answeredAt = performance.now();
      this.logger.debug({ event: 'redis.liveness-failed', error });
    }
  }

  acquire(request: LockRequest): Promise<LockAnswer> {
    return this.acquiring.add(request);
  }

  extend(key: string, token: string, ttlMs: number): Promise<boolean> {
    return this.changing.add({ key, token, verb: 'extend', ttlMs, outcome: '' });
  }

  seal(key: string, token: string, outcome: unknown, keepMs: number): Promise<boolean> {
    return this.changing.add({ key, token, verb: 'seal', ttlMs: keepMs, outcome: JSON.stringify(outcome) });
  }

  release(key: string, token: string): Promise<boolean> {
    return this.changing.add({ key, token, verb: 'release', ttlMs: 0, outcome: '' });
  }

  /** The seal of a key, where it has one. */
  sealOf(key: string): Promise<Sealed | undefined> {
    return this.reading.add(key);
  }

  /** Redis forgets by itself. */
  async sweep(): Promise<number> {
    return 0;
  }

  private async acquireTogether(batch: LockRequest[]): Promise<LockAnswer[]> {
    const keys = batch.map(({ key }) => key);
    const values = batch.flatMap(({ token, ttlMs, requestHash, mayTakeOver }) => [
      token,
      ttlMs,
      requestHash ?? '',
      mayTakeOver ? '1' : '0',
    ]);
    const answers = await this.redis.acquireKeys(keys.length, ...keys, ...values);
    return answers.map((answer, index) => this.read(answer, keys[index]!));
  }

  private read(answer: string, key: string): LockAnswer {
    if (answer === 'A' || answer === 'T') return { kind: 'acquired', takenOver: answer === 'T' };
    if (answer.startsWith('=L')) return { kind: 'locked', holder: holderOf(answer.slice(2)) };
    const space = answer.indexOf(' ');
    if (answer.startsWith('=S') && space > 0) {
      try {
        return {
          kind: 'sealed',
          requestHash: answer.slice(2, space) || null,
          outcome: JSON.parse(answer.slice(space + 1)) as unknown,
        };
      } catch {
        // falls through: not ours
      }
    }
    // Another program writes under our prefix, or a value was damaged. It counts as locked until it expires: the one
    // answer by which nothing is sent twice.
    this.logger.error({ event: 'idempotency.value-unreadable', key });
    return { kind: 'locked', holder: null };
  }

  private async readTogether(keys: string[]): Promise<(Sealed | undefined)[]> {
    const found = await this.redis.mget(keys);
    return found.map((value, index) => {
      const answer = value?.startsWith('S') ? this.read(`=${value}`, keys[index]!) : undefined;
      return answer?.kind === 'sealed' ? answer : undefined;
    });
  }

  private async changeTogether(batch: LockChange[]): Promise<boolean[]> {
    const keys = batch.map(({ key }) => key);
    const values = batch.flatMap(({ token, verb, ttlMs, outcome }) => [token, verb, ttlMs, outcome]);
    const answers = await this.redis.changeKeys(keys.length, ...keys, ...values);
    return answers.map((answer) => answer === 1);
  }
}

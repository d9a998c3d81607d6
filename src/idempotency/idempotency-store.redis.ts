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

/*
 * Value under a key: `L<token> <hash>` locked, `S<hash> <outcome as JSON>` sealed; the hash may be empty. A holder is
 * alive as long as `w:<process>` exists. All scripts accept any number of keys: one round trip for all calls that
 * arrive together. The liveness key is read inside the script and is not among KEYS, so this needs a single Redis, not
 * a cluster.
 *
 * A key of another type than text would make the whole script fail, and with it all other calls of the batch; hence
 * pcall.
 */
const isOfAnotherType = `
local function isOfAnotherType(found)
  return type(found) == 'table' and found.err and string.find(found.err, 'WRONGTYPE', 1, true)
end`;

/** Answers: A acquired, T taken over, = and the present value, ? for a value that is no text. */
const acquireScript = `
${isOfAnotherType}
local answers = {}
for i, key in ipairs(KEYS) do
  local token, ttl, hash, takeover = ARGV[i * 4 - 3], ARGV[i * 4 - 2], ARGV[i * 4 - 1], ARGV[i * 4]
  local mine = 'L' .. token .. ' '
  local wanted = mine .. hash
  local found = redis.pcall('SET', key, wanted, 'PX', ttl, 'NX', 'GET')
  if isOfAnotherType(found) then
    answers[i] = '?'
  elseif type(found) == 'table' then
    return found
  elseif not found then
    answers[i] = 'A'
  elseif string.sub(found, 1, #mine) == mine then
    redis.call('SET', key, wanted, 'PX', ttl)
    answers[i] = 'A'
  elseif takeover == '1' and string.sub(found, 1, 1) == 'L' then
    local holder = string.match(found, '^L([^/ ]+)/')
    if holder and redis.call('EXISTS', 'w:' .. holder) == 0 then
      redis.call('SET', key, wanted, 'PX', ttl)
      answers[i] = 'T'
    else
      answers[i] = '=' .. found
    end
  else
    answers[i] = '=' .. found
  end
end
return answers`;

/**
 * Only the holder of the lock, by its token, may write the new value (seal), or nothing (release), or keep it (extend).
 */
const changeScript = `
${isOfAnotherType}
local answers = {}
for i, key in ipairs(KEYS) do
  local token, verb, ttl, outcome = ARGV[i * 4 - 3], ARGV[i * 4 - 2], ARGV[i * 4 - 1], ARGV[i * 4]
  local found = redis.pcall('GET', key)
  if type(found) == 'table' and not isOfAnotherType(found) then return found end
  local prefix = 'L' .. token .. ' '
  if type(found) == 'string' and string.sub(found, 1, #prefix) == prefix then
    if verb == 'seal' then
      redis.call('SET', key, 'S' .. string.sub(found, #prefix + 1) .. ' ' .. outcome, 'PX', ttl)
    elseif verb == 'extend' then
      redis.call('PEXPIRE', key, ttl)
    else
      redis.call('DEL', key)
    end
    answers[i] = 1
  else
    answers[i] = 0
  end
end
return answers`;

interface LockChange {
  key: string;
  token: string;
  verb: 'seal' | 'extend' | 'release';
  ttlMs: number;
  outcome: string;
}

type WithScripts = Redis & {
  acquireKeys(count: number, ...keysAndArguments: (string | number)[]): Promise<string[]>;
  changeKeys(count: number, ...keysAndArguments: (string | number)[]): Promise<number[]>;
};

const livenessTtlMs = 5000;
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
  private answeredAt = -Infinity;
  private connectedAnewAt = -Infinity;

  constructor(
    redis: Redis,
    private readonly processId: string,
    private readonly times = livenessTimes,
  ) {
    super();
    redis.defineCommand('acquireKeys', { lua: acquireScript });
    redis.defineCommand('changeKeys', { lua: changeScript });
    this.redis = redis as WithScripts;
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
    await this.redis.del(`w:${process}`).catch((error: unknown) => {
      this.logger.debug({ event: 'redis.liveness-failed', error }); // then it expires
    });
  }

  /** Whether Redis answers, if only to refuse: full or read-only, it can still be read. */
  get answers(): boolean {
    return performance.now() - this.answeredAt < this.times.silentAfter;
  }

  /** Also a trial: what keeps Redis from storing this keeps it from storing locks. */
  private async beat(): Promise<void> {
    const began = performance.now();
    try {
      await this.redis.set(`w:${this.processId}`, '1', 'PX', livenessTtlMs);
      this.failingSince = undefined;
      this.answeredAt = performance.now();
    } catch (error) {
      this.failingSince ??= began;
      if (error instanceof ReplyError) this.answeredAt = performance.now();
      this.logger.debug({ event: 'redis.liveness-failed', error });
      this.replaceSilentConnection();
    }
  }

  /**
   * The system gives up a connection beyond which packets vanish after a quarter of an hour. A new one may work now.
   */
  private replaceSilentConnection(): void {
    const now = performance.now();
    const isOld = now - this.connectedAnewAt >= this.times.silentAfter;
    if (this.answers || !isOld || this.redis.status !== 'ready') return;
    this.connectedAnewAt = now;
    this.redis.disconnect(true);
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

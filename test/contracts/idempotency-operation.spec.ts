import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { idempotencyCounted } from '../../src/idempotency/idempotency.counters.js';
import { Idempotency, type Acquired, type OperationOptions } from '../../src/idempotency/idempotency.service.js';
import type { IdempotencyStore } from '../../src/idempotency/idempotency-store.js';
import type { Lock } from '../../src/idempotency/lock.js';
import type { Clock } from '../../src/infra/clock.js';
import type { Heartbeat } from '../../src/liveness/heartbeat.service.js';
import { eventually } from '../support/eventually.js';
import { storeAdapters, type OpenStore } from '../support/idempotency-stores.js';

interface Request {
  text: string;
}

const minute = 60_000;
/** From one extension of a lock of a minute to the next. */
const extensionMs = 42_000;

describe.each(storeAdapters)('an idempotent operation with its state in $name', (adapter) => {
  let opened: OpenStore;
  let store: IdempotencyStore;
  let id: string;
  let warnings: () => unknown[];
  let now: number;
  const clock: Clock = { now: () => now, pause: () => Promise.resolve() };

  beforeAll(async () => {
    Logger.overrideLogger(false);
    opened = await adapter.open();
    [store] = opened.stores;
  });
  beforeEach(() => {
    id = randomUUID();
    now = 0;
    const warn = vi.spyOn(Logger.prototype, 'warn');
    warnings = () => warn.mock.calls.map(([message]) => (message as { event: unknown }).event);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
  afterAll(() => opened.release());

  function operation(options: Partial<OperationOptions<Request>> = {}, processId = opened.living) {
    const idempotency = new Idempotency(store, { processId } as Heartbeat, clock);
    return idempotency.operation<string, Request>({
      name: 'test',
      lockTtlMs: minute,
      mayTakeOver: true,
      ...options,
    });
  }

  const request: Request = { text: 'hello' };

  function lockOf(acquired: Acquired<string>): Lock {
    if (acquired.kind !== 'acquired') throw new Error(`not acquired, but ${acquired.kind}`);
    return acquired.lock;
  }

  it('gives a lock to one caller, and its outcome to the others once it is sealed', async () => {
    const keys = operation();
    const lock = lockOf(await keys.acquire(id, request));
    expect(await keys.acquire(id, request)).toEqual({ kind: 'locked', holder: opened.living });
    await lock.seal('done', minute);
    expect(await keys.acquire(id, request)).toEqual({ kind: 'sealed', outcome: 'done' });
    expect(warnings()).toEqual([]);
  });

  it('gives the lock to the next caller once it is released', async () => {
    const keys = operation({ mayTakeOver: false });
    await lockOf(await keys.acquire(id, request)).release();
    await lockOf(await keys.acquire(id, request)).seal('of the second', minute);
    expect(await keys.acquire(id, request)).toEqual({ kind: 'sealed', outcome: 'of the second' });
    expect(warnings()).toEqual([]);
  });

  it('notices another request under the same key', async () => {
    const keys = operation({ hashRequest: ({ text }) => text });
    await lockOf(await keys.acquire(id, request)).seal('done', minute);
    expect(await keys.acquire(id, { text: 'goodbye' })).toEqual({ kind: 'mismatch' });
    expect(await keys.acquire(id, { text: 'hello' })).toEqual({ kind: 'sealed', outcome: 'done' });
  });

  it('ignores the release of a sealed key, and the seal of a released one', async () => {
    const [seal, release] = [vi.spyOn(store, 'seal'), vi.spyOn(store, 'release')];
    const keys = operation();
    const sealed = lockOf(await keys.acquire(id, request));
    await sealed.seal('done', minute);
    await sealed.release();
    await sealed.seal('done again', minute);
    expect([seal.mock.calls.length, release.mock.calls.length]).toEqual([1, 0]);
    expect(await keys.acquire(id, request)).toEqual({ kind: 'sealed', outcome: 'done' });

    const other = randomUUID();
    const released = lockOf(await keys.acquire(other, request));
    await released.release();
    await released.seal('too late', minute);
    await released.release();
    expect([seal.mock.calls.length, release.mock.calls.length]).toEqual([1, 1]);
    await lockOf(await keys.acquire(other, request)).release();
    expect(warnings()).toEqual([]);
  });

  describe('as time goes by', () => {
    // The lock's interval alone: the drivers of the stores wait with timeouts of their own.
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    });
    afterEach(() => {
      vi.useRealTimers();
    });

    /** Answers of the store to the extensions so far. */
    function extensions() {
      const extend = vi.spyOn(store, 'extend');
      return () => Promise.all(extend.mock.results.map(({ value }) => value as Promise<boolean>));
    }

    it.each<[string, (lock: Lock) => Promise<void>]>([
      ['sealed', (lock) => lock.seal('done', minute)],
      ['released', (lock) => lock.release()],
    ])('extends a lock until it is %s, and no longer', async (_how, end) => {
      const answers = extensions();
      const lock = lockOf(await operation().acquire(id, request));
      expect(await answers()).toEqual([]);
      for (let extended = 1; extended <= 3; extended++) {
        vi.advanceTimersByTime(extensionMs);
        expect(await answers()).toEqual(Array<boolean>(extended).fill(true));
      }
      const ending = end(lock);
      vi.advanceTimersByTime(10 * extensionMs); // not even while the end is being written
      await ending;
      vi.advanceTimersByTime(10 * extensionMs);
      expect(await answers()).toHaveLength(3);
      expect(vi.getTimerCount()).toBe(0);
      expect(warnings()).toEqual([]);
    });

    it('extends no lock whose end could not be written', async () => {
      const answers = extensions();
      const lock = lockOf(await operation().acquire(id, request));
      vi.spyOn(store, 'seal').mockRejectedValueOnce(new Error('store down'));
      await lock.seal('done', minute);
      vi.advanceTimersByTime(10 * extensionMs);
      expect(await answers()).toEqual([]);
    });

    it('tries an extension again, soon, that the store did not answer', async () => {
      const lock = lockOf(await operation().acquire(id, request));
      const extend = vi.spyOn(store, 'extend').mockRejectedValueOnce(new Error('store down'));
      vi.advanceTimersByTime(extensionMs);
      await expect(extend.mock.results[0]!.value).rejects.toThrow('store down');
      await new Promise((resolve) => setImmediate(resolve));
      vi.advanceTimersByTime(extensionMs / 7); // a tenth of its life: well before it ends
      expect(await extend.mock.results[1]!.value).toBe(true);
      expect(warnings()).toEqual(['idempotency.extend-failed']);
      await lock.release();
    });

    it('holds a lock as long as it lasts from the moment at which the store was asked for it, or to extend it', async () => {
      const acquire = store.acquire.bind(store);
      vi.spyOn(store, 'acquire').mockImplementationOnce(async (lockRequest) => {
        const answer = await acquire(lockRequest);
        now = minute / 2; // the answer was long on its way
        return answer;
      });
      const lock = lockOf(await operation().acquire(id, request));
      now = minute - 1;
      expect(lock.isHeld).toBe(true);
      const answers = extensions();
      vi.spyOn(store, 'extend').mockRejectedValueOnce(new Error('store down'));
      vi.advanceTimersByTime(extensionMs);
      await expect(answers()).rejects.toThrow('store down');
      await new Promise((resolve) => setImmediate(resolve));
      now = minute;
      expect(lock.isHeld).toBe(false);
      vi.advanceTimersByTime(extensionMs / 7);
      await eventually(() => expect(lock.isHeld).toBe(true));
      now = 2 * minute;
      expect(lock.isHeld).toBe(false);
      await lock.release();
    });
  });

  it.each<['seal' | 'release', (lock: Lock) => Promise<void>]>([
    ['seal', (lock) => lock.seal('done', minute)],
    ['release', (lock) => lock.release()],
  ])('does not fail its caller when the store fails at the %s', async (verb, end) => {
    vi.spyOn(store, verb).mockRejectedValueOnce(new Error('store down'));
    const keys = operation();
    await expect(end(lockOf(await keys.acquire(id, request)))).resolves.toBeUndefined();
    expect(warnings()).toEqual([`idempotency.${verb}-failed`]);
    expect(await keys.acquire(id, request)).toEqual({ kind: 'locked', holder: opened.living }); // until its TTL ends
  });

  it('does not fail a caller that has lost its lock, and keeps the outcome of the one that took it over', async () => {
    const lost = lockOf(await operation({}, opened.dead).acquire(id, request));
    const keys = operation();
    await lockOf(await keys.acquire(id, request)).seal('of the living', minute);
    await expect(lost.seal('of the dead', minute)).resolves.toBeUndefined();
    expect(warnings()).toEqual(['idempotency.lock-lost']);
    expect(await keys.acquire(id, request)).toEqual({ kind: 'sealed', outcome: 'of the living' });
  });

  describe('when the store’s answer is lost', () => {
    /** The store acquires, but its next answers do not arrive. @returns the tokens it is given from now on */
    function loseAnswers(count: number): string[] {
      const acquire = store.acquire.bind(store);
      const tokens: string[] = [];
      vi.spyOn(store, 'acquire').mockImplementation(async (lockRequest) => {
        const isLost = tokens.push(lockRequest.token) <= count;
        const answer = await acquire(lockRequest);
        if (isLost) throw new Error('connection lost');
        return answer;
      });
      return tokens;
    }

    it('acquires the key with the same token when it is asked for again', async () => {
      const tokens = loseAnswers(2);
      const keys = operation();
      await expect(keys.acquire(id, request)).rejects.toThrow('connection lost');
      await expect(keys.acquire(id, request)).rejects.toThrow('connection lost');
      const lock = lockOf(await keys.acquire(id, request));
      expect(tokens).toEqual([tokens[0], tokens[0], tokens[0]]);
      await lock.seal('done', minute);
      expect(await keys.acquire(id, request)).toEqual({ kind: 'sealed', outcome: 'done' });
      expect(tokens[3]).not.toBe(tokens[0]);
      expect(warnings()).toEqual([]);
    });

    it('gives the lock to one of those that ask again', async () => {
      loseAnswers(1);
      const keys = operation();
      await expect(keys.acquire(id, request)).rejects.toThrow('connection lost');
      const answers = await Promise.all(Array.from({ length: 20 }, () => keys.acquire(id, request)));
      expect(answers.filter(({ kind }) => kind === 'acquired')).toHaveLength(1);
      expect(answers.filter(({ kind }) => kind === 'locked')).toHaveLength(19);
      await lockOf(answers.find(({ kind }) => kind === 'acquired')!).release();
    });

    it('remembers the token of the first of several that were lost together', async () => {
      const tokens = loseAnswers(3);
      const keys = operation();
      const lost = await Promise.allSettled([1, 2, 3].map(() => keys.acquire(id, request)));
      expect(lost.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
      const lock = lockOf(await keys.acquire(id, request));
      expect(new Set(tokens).size).toBe(3);
      expect(tokens[3]).toBe(tokens[0]);
      await lock.release();
      expect(warnings()).toEqual([]);
    });
  });

  it('counts each answer under the operation’s name', async () => {
    const name = `counted-${randomUUID()}`;
    const keys = operation({ name, hashRequest: ({ text }) => text });
    const counts = async () => {
      const { values } = await idempotencyCounted.get();
      const own = values.filter(({ labels }) => labels.operation === name);
      return Object.fromEntries(own.map(({ labels, value }) => [labels.result, value]));
    };
    expect(await counts()).toEqual({});
    const lock = lockOf(await keys.acquire(id, request));
    expect(await counts()).toEqual({ miss: 1 });
    await keys.acquire(id, request);
    await lock.seal('done', minute);
    await keys.acquire(id, request);
    await keys.acquire(id, request);
    await keys.acquire(id, { text: 'goodbye' });
    expect(await counts()).toEqual({ miss: 1, 'in-flight': 1, hit: 2, mismatch: 1 });

    const other = randomUUID();
    const lost = lockOf(await operation({ name }, opened.dead).acquire(other, request));
    await lockOf(await keys.acquire(other, request)).release();
    await lost.release();
    expect(await counts()).toEqual({ miss: 2, 'in-flight': 1, hit: 2, mismatch: 1, takeover: 1 });

    vi.spyOn(store, 'acquire').mockRejectedValueOnce(new Error('store down'));
    await expect(keys.acquire(randomUUID(), request)).rejects.toThrow('store down');
    expect(await counts()).toEqual({ miss: 2, 'in-flight': 1, hit: 2, mismatch: 1, takeover: 1 });
  });
});

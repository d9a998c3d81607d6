import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import type { IdempotencyStore } from '../../src/idempotency/idempotency-store.js';
import { Idempotency, type Handled, type HandlerOptions } from '../../src/idempotency/idempotency.service.js';
import { systemClock } from '../../src/infra/clock.js';
import type { Heartbeat } from '../../src/liveness/heartbeat.service.js';
import { eventually } from '../support/eventually.js';
import { storeAdapters, type OpenStore } from '../support/idempotency-stores.js';

interface Request {
  text: string;
}

const lockTtlMs = 60_000;

/** A handler whose end the test decides. */
class Handler {
  readonly requests: Request[] = [];
  private readonly ends: { resolve: (handled: Handled<string>) => void; reject: (error: unknown) => void }[] = [];

  readonly handle = (request: Request): Promise<Handled<string>> => {
    this.requests.push(request);
    return new Promise((resolve, reject) => this.ends.push({ resolve, reject }));
  };

  async finish(outcome: string, isFinal = true): Promise<void> {
    (await this.next()).resolve({ outcome, isFinal });
  }

  async fail(): Promise<void> {
    (await this.next()).reject(new Error('broken'));
  }

  private async next() {
    await eventually(() => this.ends.length > 0, 'the handler to be called');
    return this.ends.shift()!;
  }
}

describe.each(storeAdapters)('an idempotent handler with its state in $name', (adapter) => {
  let opened: OpenStore;
  let store: IdempotencyStore;
  let handler: Handler;
  let id: string;
  let warnings: () => unknown[];

  beforeAll(async () => {
    Logger.overrideLogger(false);
    opened = await adapter.open();
    [store] = opened.stores;
  });
  beforeEach(() => {
    handler = new Handler();
    id = randomUUID();
    const warn = vi.spyOn(Logger.prototype, 'warn');
    warnings = () => warn.mock.calls.map(([message]) => (message as { event: unknown }).event);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
  afterAll(() => opened.release());

  function make(options: Partial<HandlerOptions<Request>> = {}, processId = opened.living, at = store) {
    const idempotency = new Idempotency(at, { processId } as Heartbeat, systemClock);
    return idempotency.make(handler.handle, {
      name: 'test',
      lockTtlMs,
      keepTtlMs: () => 60_000,
      mayTakeOver: true,
      ...options,
    });
  }

  const request: Request = { text: 'hello' };

  it('runs once, and gives its outcome to everyone that asks later', async () => {
    const idempotent = make();
    const first = idempotent.do(id, request);
    await handler.finish('done');
    expect(await first).toEqual({ kind: 'executed', outcome: 'done' });
    expect(await idempotent.do(id, request)).toEqual({ kind: 'replayed', outcome: 'done' });
    const elsewhere = make({}, opened.living, opened.stores[1]);
    expect(await elsewhere.do(id, request)).toEqual({ kind: 'replayed', outcome: 'done' });
    expect(handler.requests).toEqual([request]);
  });

  it('tells a caller that asks meanwhile that it is under way', async () => {
    const idempotent = make();
    const first = idempotent.do(id, request);
    await eventually(() => handler.requests.length === 1);
    const others = await Promise.all(Array.from({ length: 20 }, () => idempotent.do(id, request)));
    expect(others).toEqual(others.map(() => ({ kind: 'in-flight' })));
    await handler.finish('done');
    expect(await first).toMatchObject({ kind: 'executed' });
    expect(handler.requests).toHaveLength(1);
  });

  it('runs once for many that ask at the same time', async () => {
    const idempotent = make();
    const all = Array.from({ length: 50 }, () => idempotent.do(id, request));
    await handler.finish('done');
    const kinds = (await Promise.all(all)).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'executed')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'in-flight')).toHaveLength(49);
  });

  it('runs again after an outcome that was not final', async () => {
    const idempotent = make();
    const first = idempotent.do(id, request);
    await handler.finish('try again', false);
    expect(await first).toEqual({ kind: 'executed', outcome: 'try again' });
    const second = idempotent.do(id, request);
    await handler.finish('done');
    expect(await second).toEqual({ kind: 'executed', outcome: 'done' });
  });

  it('notices another request under the same key', async () => {
    const idempotent = make({ hashRequest: ({ text }) => text });
    const first = idempotent.do(id, request);
    await handler.finish('done');
    await first;
    expect(await idempotent.do(id, { text: 'goodbye' })).toEqual({ kind: 'mismatch' });
    expect(await idempotent.do(id, { text: 'hello' })).toEqual({ kind: 'replayed', outcome: 'done' });
  });

  it('keeps operations and ids apart', async () => {
    const [one, other] = [make(), make({ name: 'other' })];
    const all = [one.do(id, request), other.do(id, request), one.do(randomUUID(), request)];
    for (const outcome of ['a', 'b', 'c']) await handler.finish(outcome);
    expect((await Promise.all(all)).map(({ kind }) => kind)).toEqual(['executed', 'executed', 'executed']);
  });

  it('frees the key when the handler breaks, and says so to its caller', async () => {
    const idempotent = make();
    const first = idempotent.do(id, request);
    await handler.fail();
    await expect(first).rejects.toThrow('broken');
    const second = idempotent.do(id, request);
    await handler.finish('done');
    expect(await second).toEqual({ kind: 'executed', outcome: 'done' });
  });

  it('keeps the lock for as long as the handler runs, however long', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }); // of the lock alone
    try {
      const extend = vi.spyOn(store, 'extend');
      const idempotent = make();
      const first = idempotent.do(id, request);
      await eventually(() => handler.requests.length === 1, 'the handler to be called');
      for (let extensions = 1; extensions <= 3; extensions++) {
        // The store has the true time: without the extension, the lock would last there nevertheless.
        vi.advanceTimersByTime(0.9 * lockTtlMs);
        const answers = await Promise.all(extend.mock.results.map(({ value }) => value as Promise<boolean>));
        expect(answers.length).toBeGreaterThanOrEqual(extensions);
        expect(new Set(answers)).toEqual(new Set([true]));
        expect(await make().do(id, request)).toEqual({ kind: 'in-flight' });
      }
      await handler.finish('done');
      expect(await first).toEqual({ kind: 'executed', outcome: 'done' });
      expect(await idempotent.do(id, request)).toEqual({ kind: 'replayed', outcome: 'done' });
      expect(warnings()).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('takes over from a process that died, at once where it may', async () => {
    const lost = make({}, opened.dead).do(id, request);
    await eventually(() => handler.requests.length === 1);
    expect(await make({ mayTakeOver: false }).do(id, request)).toEqual({ kind: 'in-flight' });
    const second = make().do(id, request);
    await eventually(() => handler.requests.length === 2);
    await handler.finish('of the dead'); // it was only slow
    expect(await lost).toEqual({ kind: 'executed', outcome: 'of the dead' });
    expect(warnings()).toEqual(['idempotency.lock-lost']);
    await handler.finish('of the living');
    expect(await second).toEqual({ kind: 'executed', outcome: 'of the living' });
    expect(await make().do(id, request)).toEqual({ kind: 'replayed', outcome: 'of the living' });
  });

  it('returns the outcome although it could not be sealed', async () => {
    vi.spyOn(store, 'seal').mockRejectedValueOnce(new Error('store down'));
    const first = make().do(id, request);
    await handler.finish('done');
    expect(await first).toEqual({ kind: 'executed', outcome: 'done' });
    expect(warnings()).toEqual(['idempotency.seal-failed']);
    expect(await make().do(id, request)).toEqual({ kind: 'in-flight' }); // until the lock ends
  });

  it('does not run when the store does not answer', async () => {
    vi.spyOn(store, 'acquire').mockRejectedValueOnce(new Error('store down'));
    await expect(make().do(id, request)).rejects.toThrow('store down');
    expect(handler.requests).toEqual([]);
  });

  it('has at its next try the lock that the store gave it in an answer that was lost', async () => {
    const acquire = store.acquire.bind(store);
    vi.spyOn(store, 'acquire').mockImplementationOnce(async (lockRequest) => {
      await acquire(lockRequest);
      throw new Error('connection lost');
    });
    const idempotent = make();
    await expect(idempotent.do(id, request)).rejects.toThrow('connection lost');
    const second = idempotent.do(id, request);
    await handler.finish('done');
    expect(await second).toEqual({ kind: 'executed', outcome: 'done' });
    expect(await idempotent.do(id, request)).toEqual({ kind: 'replayed', outcome: 'done' });
    expect(warnings()).toEqual([]);
  });

  it('goes on when a lock cannot be extended once', async () => {
    const extend = vi.spyOn(store, 'extend').mockRejectedValueOnce(new Error('store down'));
    const first = make({ lockTtlMs: 300 }).do(id, request);
    await eventually(() => extend.mock.calls.length >= 1);
    await handler.finish('done');
    expect(await first).toMatchObject({ outcome: 'done' });
    expect(warnings()).toContain('idempotency.extend-failed');
  });
});

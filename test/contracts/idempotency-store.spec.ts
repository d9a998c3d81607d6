import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import type { IdempotencyStore, LockAnswer, LockRequest } from '../../src/idempotency/idempotency-store.js';
import { eventually } from '../support/eventually.js';
import { storeAdapters, type OpenStore } from '../support/idempotency-stores.js';

const hour = 3_600_000;
const acquired: LockAnswer = { kind: 'acquired', takenOver: false };
const takenOver: LockAnswer = { kind: 'acquired', takenOver: true };

describe.each(storeAdapters)('the idempotency store, $name', (adapter) => {
  let opened: OpenStore;
  let store: IdempotencyStore;
  let other: IdempotencyStore;
  let counter = 0;
  let locked: LockAnswer;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    opened = await adapter.open();
    [store, other] = opened.stores;
    locked = { kind: 'locked', holder: opened.living };
  });
  afterAll(() => opened.release());

  const newKey = () => `i9y:test:${randomUUID()}`;
  const newToken = (holder = opened.living) => `${holder}/${++counter}`;

  function requestFor(key: string, parts: Partial<LockRequest> = {}): LockRequest {
    return { key, token: newToken(), ttlMs: hour, requestHash: null, mayTakeOver: true, ...parts };
  }

  /** A key locked by a process that is alive, or not. */
  async function lock(parts: Partial<LockRequest> = {}): Promise<LockRequest> {
    const made = requestFor(newKey(), parts);
    expect(await store.acquire(made)).toEqual(acquired);
    return made;
  }

  it('gives a free key to its first caller, and tells the others that it is locked, and by which process', async () => {
    const { key } = await lock();
    expect(await store.acquire(requestFor(key))).toEqual(locked);
    expect(await other.acquire(requestFor(key))).toEqual(locked);
  });

  it('gives a key again to the caller that has it already, whose answer was lost', async () => {
    const made = await lock({ ttlMs: 400, token: newToken(opened.dead) });
    expect(await store.acquire({ ...made, ttlMs: hour, requestHash: 'other' })).toEqual(acquired);
    const neighbour = await lock({ ttlMs: 400 });
    await eventually(async () => (await other.acquire(requestFor(neighbour.key))).kind === 'acquired');
    expect(await other.acquire(requestFor(made.key, { mayTakeOver: false }))).toEqual({
      ...locked,
      holder: opened.dead,
    });
    expect(await store.seal(made.key, made.token, 'done', hour)).toBe(true);
    expect(await store.acquire(made)).toEqual({ kind: 'sealed', outcome: 'done', requestHash: 'other' });
  });

  it('gives a key to one of many that ask at the same time', async () => {
    const key = newKey();
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, nr) => (nr % 2 === 0 ? store : other).acquire(requestFor(key))),
    );
    expect(answers.filter(({ kind }) => kind === 'acquired')).toEqual([acquired]);
    expect(answers.filter(({ kind }) => kind === 'locked')).toHaveLength(199);
  });

  it('gives every one of many keys to one of two processes that ask for them in different orders', async () => {
    const keys = Array.from({ length: 100 }, newKey);
    const [mine, theirs] = await Promise.all([
      Promise.all(keys.map((key) => store.acquire(requestFor(key)))),
      Promise.all(keys.toReversed().map((key) => other.acquire(requestFor(key)))),
    ]);
    const isMine = (answer: LockAnswer) => answer.kind === 'acquired';
    for (let nr = 0; nr < keys.length; nr++) {
      expect([mine[nr]!, theirs[keys.length - 1 - nr]!].filter(isMine)).toHaveLength(1);
    }
  });

  it('frees a key when its TTL is over', async () => {
    const { key } = await lock({ ttlMs: 30 });
    await eventually(async () => (await other.acquire(requestFor(key, { mayTakeOver: false }))).kind === 'acquired');
  });

  it('does not call it a takeover when the TTL was over', async () => {
    const { key } = await lock({ ttlMs: 30, token: newToken(opened.dead) });
    const answer = await eventually(async () => {
      const found = await other.acquire(requestFor(key, { mayTakeOver: false }));
      return found.kind === 'acquired' && found;
    });
    expect(answer).toEqual(acquired);
  });

  it('keeps a key longer for its holder', async () => {
    const { key, token } = await lock({ ttlMs: 3000 }); // a busy machine may take that long until it is extended
    const neighbour = await lock({ ttlMs: 3000 });
    expect(await store.extend(key, token, hour)).toBe(true);
    await eventually(async () => (await other.acquire(requestFor(neighbour.key))).kind === 'acquired');
    expect(await other.acquire(requestFor(key))).toEqual(locked);
  });

  it('sets the TTL anew rather than adding to it', async () => {
    const { key, token } = await lock();
    expect(await store.extend(key, token, 30)).toBe(true);
    await eventually(async () => (await other.acquire(requestFor(key))).kind === 'acquired');
  });

  it('gives the outcome of a sealed key to everyone, and the request it was for', async () => {
    const { key, token } = await lock({ requestHash: 'abc' });
    const outcome = { kind: 'delivered', list: [1, 'zwei', null, { deep: true }], text: '€ 😀 "\n' };
    expect(await store.seal(key, token, outcome, hour)).toBe(true);
    const sealed = { kind: 'sealed', outcome, requestHash: 'abc' };
    expect(await store.acquire(requestFor(key, { requestHash: 'abc' }))).toEqual(sealed);
    expect(await other.acquire(requestFor(key, { requestHash: 'another' }))).toEqual(sealed);
    expect(await other.acquire(requestFor(key))).toEqual(sealed);
  });

  it.each<[string, unknown]>([
    ['nothing', null],
    ['a text', 'done'],
    ['an empty text', ''],
    ['a number', 0],
    ['false', false],
    ['characters that Postgres has no room for', { text: 'a\0b', half: '\ud83d' }],
    ['a text like a lock', 'Lsomebody/1 '],
    ['a long text', 'x'.repeat(100_000)],
  ])('gives back as outcome %s', async (_what, outcome) => {
    const { key, token } = await lock();
    expect(await store.seal(key, token, outcome, hour)).toBe(true);
    expect(await other.acquire(requestFor(key))).toEqual({ kind: 'sealed', outcome, requestHash: null });
  });

  it('forgets an outcome when its TTL is over', async () => {
    const { key, token } = await lock();
    expect(await store.seal(key, token, 'done', 30)).toBe(true);
    await eventually(async () => (await other.acquire(requestFor(key))).kind === 'acquired');
  });

  it('frees a key that is released at once', async () => {
    const { key, token } = await lock();
    expect(await store.release(key, token)).toBe(true);
    expect(await other.acquire(requestFor(key, { mayTakeOver: false }))).toEqual(acquired);
  });

  it('lets only the holder extend, seal or release', async () => {
    const { key } = await lock();
    const stranger = newToken();
    expect(await store.extend(key, stranger, hour)).toBe(false);
    expect(await store.seal(key, stranger, 'mine', hour)).toBe(false);
    expect(await store.release(key, stranger)).toBe(false);
    expect(await other.acquire(requestFor(key))).toEqual(locked);
  });

  it('tells apart tokens of which one begins like the other', async () => {
    const token = newToken();
    const { key } = await lock({ token: `${token}0` });
    expect(await store.release(key, token)).toBe(false);
    expect(await other.acquire(requestFor(key))).toEqual(locked);
  });

  it('tells a holder that comes too late, and changes nothing for the next one', async () => {
    const { key, token } = await lock({ ttlMs: 30 });
    const next = requestFor(key);
    await eventually(async () => (await other.acquire(next)).kind === 'acquired');
    expect(await store.extend(key, token, hour)).toBe(false);
    expect(await store.seal(key, token, 'late', hour)).toBe(false);
    expect(await store.release(key, token)).toBe(false);
    expect(await other.seal(key, next.token, 'in time', hour)).toBe(true);
    expect(await store.acquire(requestFor(key))).toMatchObject({ outcome: 'in time' });
  });

  it('tells a holder whose TTL is over, also when no other caller asked for the key', async () => {
    const { key, token } = await lock({ ttlMs: 1 });
    await eventually(async () => !(await store.extend(key, token, 1)));
    expect(await store.seal(key, token, 'late', hour)).toBe(false);
    expect(await other.acquire(requestFor(key))).toEqual(acquired);
  });

  it('does not let even its holder reopen a sealed key', async () => {
    const { key, token } = await lock();
    await store.seal(key, token, 'done', hour);
    expect(await store.extend(key, token, hour)).toBe(false);
    expect(await store.release(key, token)).toBe(false);
    expect(await store.seal(key, token, 'again', hour)).toBe(false);
    expect(await other.acquire(requestFor(key))).toMatchObject({ outcome: 'done' });
  });

  it('changes nothing for a key that was never locked', async () => {
    const [key, token] = [newKey(), newToken()];
    expect(await store.extend(key, token, hour)).toBe(false);
    expect(await store.seal(key, token, 'done', hour)).toBe(false);
    expect(await store.release(key, token)).toBe(false);
    expect(await store.acquire(requestFor(key))).toEqual(acquired);
  });

  it('gives a key whose holder is no longer alive to a caller that may take over', async () => {
    const { key, token } = await lock({ token: newToken(opened.dead) });
    const next = requestFor(key, { mayTakeOver: true });
    expect(await other.acquire(next)).toEqual(takenOver);
    expect(await store.seal(key, token, 'late', hour)).toBe(false);
    expect(await other.acquire(requestFor(key))).toEqual(locked);
    expect(await other.seal(key, next.token, 'mine', hour)).toBe(true);
  });

  it('gives it to one of many that may take over', async () => {
    const { key } = await lock({ token: newToken(opened.dead) });
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, nr) => (nr % 2 === 0 ? store : other).acquire(requestFor(key))),
    );
    expect(answers.filter(({ kind }) => kind === 'acquired')).toEqual([takenOver]);
  });

  it('does not give it to a caller that may not take over', async () => {
    const { key } = await lock({ token: newToken(opened.dead) });
    expect(await other.acquire(requestFor(key, { mayTakeOver: false }))).toEqual({ ...locked, holder: opened.dead });
  });

  it('never lets an outcome be taken over', async () => {
    const { key, token } = await lock({ token: newToken(opened.dead) });
    await store.seal(key, token, 'done', hour);
    expect(await other.acquire(requestFor(key, { mayTakeOver: true }))).toMatchObject({
      kind: 'sealed',
      outcome: 'done',
    });
  });

  it('gives a new holder a new request and no old outcome', async () => {
    const { key, token } = await lock({ requestHash: 'old' });
    await store.seal(key, token, 'old', 30);
    const next = requestFor(key, { requestHash: 'new' });
    await eventually(async () => (await other.acquire(next)).kind === 'acquired');
    expect(await store.acquire(requestFor(key))).toEqual(locked);
    await other.seal(key, next.token, 'new', hour);
    expect(await store.acquire(requestFor(key))).toEqual({ kind: 'sealed', outcome: 'new', requestHash: 'new' });
  });

  it('keeps the order of one holder’s calls in a batch: the call that ends the lock counts', async () => {
    const [sealed, released] = [await lock(), await lock()];
    const [, sealAnswer] = await Promise.all([
      store.extend(sealed.key, sealed.token, hour),
      store.seal(sealed.key, sealed.token, 'done', hour),
    ]);
    const [, releaseAnswer] = await Promise.all([
      store.extend(released.key, released.token, hour),
      store.release(released.key, released.token),
    ]);
    expect([sealAnswer, releaseAnswer]).toEqual([true, true]);
    expect(await other.acquire(requestFor(sealed.key))).toMatchObject({ kind: 'sealed', outcome: 'done' });
    expect(await other.acquire(requestFor(released.key))).toEqual(acquired);
  });

  it('answers each call of a batch by itself', async () => {
    const [free, taken, sealed, orphan] = [
      newKey(),
      await lock(),
      await lock(),
      await lock({ token: newToken(opened.dead) }),
    ];
    await store.seal(sealed.key, sealed.token, 'done', hour);
    const answers = await Promise.all(
      [free, taken.key, sealed.key, orphan.key, sealed.key, free].map((key) => store.acquire(requestFor(key))),
    );
    const done: LockAnswer = { kind: 'sealed', outcome: 'done', requestHash: null };
    expect(answers).toEqual([acquired, locked, done, takenOver, done, locked]);
  });

  it('serves many keys at the same time, from lock to seal', async () => {
    const requests = Array.from({ length: 600 }, () => requestFor(newKey()));
    const results = await Promise.all(
      requests.map(async ({ key, token, ...rest }, nr) => {
        const at = nr % 2 === 0 ? store : other;
        expect((await at.acquire({ key, token, ...rest })).kind).toBe('acquired');
        expect(await at.extend(key, token, hour)).toBe(true);
        return nr % 3 === 0 ? at.release(key, token) : at.seal(key, token, nr, hour);
      }),
    );
    expect(new Set(results)).toEqual(new Set([true]));
    const after = await Promise.all(requests.map(({ key }) => store.acquire(requestFor(key))));
    expect(after).toEqual(
      requests.map((_, nr) => (nr % 3 === 0 ? acquired : { kind: 'sealed', outcome: nr, requestHash: null })),
    );
  });

  it('sweeps away expired keys, and no others', async () => {
    const [over, alive] = [await lock({ ttlMs: 1 }), await lock()];
    await eventually(async () => !(await store.extend(over.key, over.token, 1)));
    await store.sweep(0, 1000);
    expect(await other.acquire(requestFor(over.key))).toEqual(acquired);
    expect(await other.acquire(requestFor(alive.key))).toEqual(locked);
  });

  it('goes on with the other calls when one uses a text that cannot be stored', async () => {
    const bad = requestFor(`bad \0 key ${randomUUID()}`);
    const [, good] = await Promise.allSettled([store.acquire(bad), store.acquire(requestFor(newKey()))]);
    expect(good).toEqual({ status: 'fulfilled', value: acquired });
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { isDataError } from '../../src/infra/postgres/postgres-errors.js';
import type { Postgres, Query } from '../../src/infra/postgres/postgres.js';
import { accept as acceptWith } from '../../src/ledger/accept.js';
import type { Accepted, Decision } from '../../src/ledger/acceptance.js';
import { expiredCounted } from '../../src/ledger/ledger.counters.js';
import { sweepOnceKeys } from '../../src/ledger/once-key.js';
import { eventually } from '../support/eventually.js';
import { TestLedger, toBroker } from '../support/ledger.js';
import { contentKey, onTerms, requestKey } from '../support/once-keys.js';
import { real, stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

const forQueue: Decision = { kind: 'accepted', handedTo: 'worker' };
const tooOld: Decision = { kind: 'accepted', handedTo: 'nobody' };
const duplicateOf = (notificationId: string): Decision => ({ kind: 'duplicate', notificationId });
const repeats = (notificationId: string, isDuplicate = false): Decision => ({
  kind: 'repeated',
  requestHash: 'hash',
  notificationId,
  isDuplicate,
});

describe.each(stacks)('accepting on terms on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let test: TestLedger;
  let version: number;

  beforeAll(async () => {
    prepared = await stack.prepare();
    test = await TestLedger.open(prepared.settings);
    version = await test.catalogueVersion();
  });
  afterAll(async () => {
    await test.close();
    await prepared.release();
  });

  const accept = async (...items: Accepted[]): Promise<Decision[]> => (await test.acceptAll(items)).decisions;

  async function statesOf(...items: { id: string }[]): Promise<string[][]> {
    const rows = await test.sql<{ notification_id: string; state: string }>(
      'SELECT notification_id, state FROM delivery WHERE notification_id = ANY ($1::uuid[])',
      [items.map(({ id }) => id)],
    );
    return items.map(({ id }) => rows.filter((row) => row.notification_id === id).map((row) => row.state));
  }

  const keysLeadingTo = (id: string) =>
    test.sql<{ operation: string }>('SELECT operation FROM once_key WHERE result_id = $1 ORDER BY operation', [id]);

  /** The ledger's database, with something that happens before the statement of that name. */
  function before(name: string, happen: () => Promise<unknown>): Postgres {
    const watched =
      (query: Query): Query =>
      async (statement, values) => {
        if (statement.name === name) await happen();
        return query(statement, values);
      };
    const { postgres } = test;
    return {
      query: watched((statement, values) => postgres.query(statement, values)),
      transaction: (work: (query: Query) => Promise<unknown>) => postgres.transaction((query) => work(watched(query))),
    } as Postgres;
  }

  it('happens once per key, and says what a reserved key led to', async () => {
    const request = requestKey();
    const [first, second] = [onTerms({ request }), onTerms({ request: { ...request, requestHash: 'other' } })];
    expect(await accept(first)).toEqual([forQueue]);
    expect(await accept(second)).toEqual([repeats(first.id)]);
    expect(await statesOf(first, second)).toEqual([['queued'], []]);
  });

  it('keeps the keys of applications and operations apart', async () => {
    const key = randomUUID();
    const items = [
      onTerms({ request: requestKey(key) }),
      onTerms({ request: requestKey(key, { application: 'another' }) }),
      onTerms({ request: requestKey(key, { operation: 'put' }) }),
    ];
    expect(await accept(...items)).toEqual([forQueue, forQueue, forQueue]);
  });

  it('reserves a key again once its time is over', async () => {
    const [request, content] = [requestKey(), contentKey()];
    const [first, second] = [onTerms({ request, content }), onTerms({ request, content })];
    await accept(first);
    await test.sql('UPDATE once_key SET expires_at = now() WHERE result_id = $1', [first.id]);
    expect(await accept(second)).toEqual([forQueue]);
    expect(await keysLeadingTo(second.id)).toHaveLength(2);
  });

  it('accepts the others of a batch in which some are refused', async () => {
    const request = requestKey();
    const first = onTerms({ request });
    await accept(first);
    const batch = [
      onTerms({}),
      onTerms({ request }),
      onTerms({ request: requestKey() }),
      onTerms({ request: requestKey(), content: contentKey() }),
    ];
    expect(await accept(...batch)).toEqual([forQueue, repeats(first.id), forQueue, forQueue]);
    expect(await statesOf(...batch)).toEqual([['queued'], [], ['queued'], ['queued']]);
  });

  it('reserves no key for content that was not published because its request had been carried out before', async () => {
    const [request, content] = [requestKey(), contentKey()];
    const first = onTerms({ request });
    await accept(first);
    const repeated = onTerms({ request, content });
    expect(await accept(repeated)).toEqual([repeats(first.id)]);
    expect(await keysLeadingTo(repeated.id)).toEqual([]);
    expect(await accept(onTerms({ content }))).toEqual([forQueue]);
  });

  it('lets a request for content published before lead to the first, when it is repeated as well', async () => {
    const [content, request] = [contentKey(), requestKey()];
    const first = onTerms({ content });
    await accept(first);
    expect(await accept(onTerms({ request, content }))).toEqual([duplicateOf(first.id)]);
    expect(await accept(onTerms({ request, content }))).toEqual([repeats(first.id, true)]);
  });

  it('lets any number of the same content in one batch lead to the first of them', async () => {
    const content = contentKey();
    const batch = Array.from({ length: 256 }, (_, nr) =>
      onTerms(nr % 2 ? { request: requestKey(), content } : { content }),
    );
    expect(await accept(...batch)).toEqual([forQueue, ...batch.slice(1).map(() => duplicateOf(batch[0]!.id))]);
  });

  it('accepts content in the same batch with any number of requests for it that were carried out before', async () => {
    const [content, carriedOut] = [contentKey(), Array.from({ length: 100 }, () => requestKey())];
    const first = carriedOut.map((request) => onTerms({ request }));
    await accept(...first);
    const repeated = carriedOut.map((request) => onTerms({ request, content }));
    const [one, other] = [onTerms({ request: requestKey(), content }), onTerms({ content })];
    expect(await accept(...repeated, one, other)).toEqual([
      ...first.map(({ id }) => repeats(id)),
      forQueue,
      duplicateOf(one.id),
    ]);
  });

  it('reserves no content for what is too old to be sent, now or at its time, so that the next one is sent', async () => {
    const [now, content] = [Date.now(), contentKey()];
    const old = onTerms({ content, expiresAt: now - 1000 });
    const scheduled = onTerms({ content, notBefore: now + 120_000, expiresAt: now + 60_000 });
    const [first, fresh] = [onTerms({ content, expiresAt: now + 60_000 }), onTerms({ content })];
    expect(await accept(old)).toEqual([tooOld]);
    expect(await accept(scheduled)).toEqual([{ kind: 'accepted', handedTo: 'dispatcher' }]);
    expect(await keysLeadingTo(old.id)).toEqual([]);
    expect(await accept(first)).toEqual([forQueue]);
    expect(await accept(fresh, { ...old, id: onTerms({}).id })).toEqual([duplicateOf(first.id), duplicateOf(first.id)]);
    expect(await statesOf(old, scheduled, first)).toEqual([['expired'], ['waiting'], ['queued']]);
  });

  describe('three at once', () => {
    type Kind = 'none' | 'a' | 'b' | 'reserved';
    interface Wish {
      request: Kind;
      content: Kind;
      isOld?: boolean;
    }
    const kinds: Kind[] = ['none', 'a', 'b', 'reserved'];
    const wishes = kinds.flatMap((request) => kinds.map((content): Wish => ({ request, content })));
    const ofAge = (['none', 'a'] as const).flatMap((request) =>
      (['a', 'reserved'] as const).flatMap((content) => [false, true].map((isOld) => ({ request, content, isOld }))),
    );
    const allOf = (wishes: Wish[]) =>
      wishes.flatMap((one) => wishes.flatMap((two) => wishes.map((three) => [one, two, three])));
    const scenarios = [...allOf(wishes), ...allOf(ofAge)];

    /** The decisions on notifications that come one after the other. `reserved` maps keys to what they lead to. */
    function oneByOne(items: Accepted[], reserved: Map<string, { id: string; isDuplicate: boolean }>): Decision[] {
      return items.map(({ id, request, content, expiresAt }) => {
        const carriedOut = request && reserved.get(request.key);
        if (carriedOut) return repeats(carriedOut.id, carriedOut.isDuplicate);
        const published = content && reserved.get(content.key);
        if (request) reserved.set(request.key, { id: published?.id ?? id, isDuplicate: Boolean(published) });
        if (published) return duplicateOf(published.id);
        if (expiresAt !== null) return tooOld;
        if (content) reserved.set(content.key, { id, isDuplicate: false });
        return forQueue;
      });
    }

    it('are decided as if they came one after the other, with any combination of keys and ages', async () => {
      const former = { request: requestKey(), content: contentKey() };
      const first = onTerms(former);
      await accept(first);
      const batches: Accepted[][] = [];
      scenarios.forEach((scenario, nr) => {
        const [requests, contents] = [new Map([['reserved', former.request]]), new Map([['reserved', former.content]])];
        for (const kind of ['a', 'b']) {
          requests.set(kind, requestKey(`${nr} ${kind}`));
          contents.set(kind, contentKey(`content of ${nr} ${kind}`));
        }
        if (nr % 85 === 0) batches.push([]); // 85 × 3 notifications are as many as are accepted together
        for (const wish of scenario) {
          const keys = { request: requests.get(wish.request) ?? null, content: contents.get(wish.content) ?? null };
          const expiresAt = wish.isOld ? Date.now() - 60_000 : null;
          batches.at(-1)!.push(onTerms({ ...keys, expiresAt, subscriptionIds: [] }));
        }
      });
      const reserved = new Map(
        [former.request, former.content].map(({ key }) => [key, { id: first.id, isDuplicate: false }]),
      );
      for (const batch of batches) expect(await accept(...batch)).toEqual(oneByOne(batch, reserved));
      const rows = await test.sql<{ key: string; id: string; isDuplicate: boolean }>(
        `SELECT key, result_id AS id, is_duplicate AS "isDuplicate" FROM once_key WHERE key = ANY ($1::text[])`,
        [[...reserved.keys()]],
      );
      expect(new Map(rows.map(({ key, ...leadsTo }) => [key, leadsTo]))).toEqual(reserved);
    });
  });

  it('is undecided, with no row written, when the key in the way is deleted before it is read', async () => {
    const request = requestKey();
    await accept(onTerms({ request }));
    const item = onTerms({ request });
    const forget = before('find-once-keys', () => test.sql('DELETE FROM once_key WHERE key = $1', [request.key]));
    const { decisions } = await acceptWith(forget, version, [item, onTerms({})], toBroker);
    expect(decisions).toEqual([{ kind: 'undecided' }, forQueue]);
    expect(await statesOf(item)).toEqual([[]]);
    expect(await accept(item)).toEqual([forQueue]);
  });

  it('writes neither key nor notification of a batch that fails', async () => {
    const items = [
      onTerms({ request: requestKey() }),
      onTerms({ request: requestKey(), content: contentKey(), body: 'a\0b' }),
    ];
    const error: unknown = await accept(...items).catch((cause: unknown) => cause);
    expect(isDataError(error)).toBe(true);
    for (const item of items) expect(await keysLeadingTo(item.id)).toEqual([]);
    expect(await statesOf(...items)).toEqual([[], []]);
  });

  it('writes neither key nor notification when the catalogue has moved on', async () => {
    const item = onTerms({ request: requestKey(), content: contentKey() });
    expect(await test.acceptAll([item], toBroker, version - 1)).toMatchObject({ version, decisions: [] });
    expect(await keysLeadingTo(item.id)).toEqual([]);
    expect(await statesOf(item)).toEqual([[]]);
  });

  it('records and counts a notification that is too old as expired, and one for later as waiting until then', async () => {
    const counted = async () => (await expiredCounted.get()).values[0]!.value;
    const [now, countedBefore] = [Date.now(), await counted()];
    const items = [
      onTerms({ expiresAt: now - 1000 }),
      onTerms({ expiresAt: now + 60_000 }),
      onTerms({ notBefore: now + 60_000 }),
      onTerms({ notBefore: now - 60_000 }),
    ];
    const handedTo = (await accept(...items)).map((decision) => decision.kind === 'accepted' && decision.handedTo);
    expect(handedTo).toEqual(['nobody', 'worker', 'dispatcher', 'worker']);
    expect(await statesOf(...items)).toEqual([['expired'], ['queued'], ['waiting'], ['queued']]);
    expect((await counted()) - countedBefore).toBe(1);
    const rows = await test.sql<{ next_at: Date | null; queued_at: Date | null; expires_at: Date | null }>(
      `SELECT next_at, queued_at, expires_at FROM delivery WHERE notification_id = ANY ($1::uuid[]) ORDER BY notification_id`,
      [items.map(({ id }) => id)],
    );
    const timeOf = (date: Date | null) => date?.getTime() ?? null;
    expect(rows.map(({ next_at: nextAt }) => timeOf(nextAt))).toEqual([null, null, now + 60_000, null]);
    expect(rows.map(({ queued_at: queuedAt }) => queuedAt !== null)).toEqual([false, true, false, true]);
    expect(rows.map(({ expires_at: expiresAt }) => timeOf(expiresAt))).toEqual([now - 1000, now + 60_000, null, null]);
  });

  it('lets everything wait where there is no queue, and a notification for later until then', async () => {
    const now = Date.now();
    const items = [onTerms({ request: requestKey() }), onTerms({ notBefore: now + 60_000 })];
    const { decisions } = await test.acceptAll(items, { state: 'waiting', delayMs: 1000 });
    expect(decisions).toEqual(items.map(() => ({ kind: 'accepted', handedTo: 'dispatcher' })));
    const [soon, later] = await Promise.all(
      items.map(({ id, subscriptionIds }) => test.row({ notificationId: id, subscriptionId: subscriptionIds[0]! })),
    );
    expect(soon).toMatchObject({ state: 'waiting', process: null });
    expect(soon!.due_in_ms).toBeLessThanOrEqual(1000);
    expect(later!.due_in_ms).toBeGreaterThan(10_000);
  });

  it('names the process whose memory is the queue, but only where the queue has the delivery', async () => {
    const items = [onTerms({ request: requestKey() }), onTerms({ notBefore: Date.now() + 60_000 })];
    await test.acceptAll(items, { state: 'queued', process: 'a process' });
    const rows = await Promise.all(
      items.map(({ id, subscriptionIds }) => test.row({ notificationId: id, subscriptionId: subscriptionIds[0]! })),
    );
    expect(rows.map((row) => row!.process)).toEqual(['a process', null]);
  });

  it('forgets keys whose time is over, and only those', async () => {
    const [over, kept] = [requestKey(), requestKey()];
    await accept(onTerms({ request: over }), onTerms({ request: kept }));
    await test.sql('UPDATE once_key SET expires_at = now() WHERE key = $1', [over.key]);
    await sweepOnceKeys(test.postgres, 0, 1000);
    const left = await test.sql<{ key: string }>('SELECT key FROM once_key WHERE key = ANY ($1::text[])', [
      [over.key, kept.key],
    ]);
    expect(left).toEqual([{ key: kept.key }]);
  });

  if (stack === real) {
    it.each([
      ['a notification', null],
      ['one that is too old', 0],
    ])('keeps the key in the way of %s from being forgotten until it is decided', async (_, expiresAt) => {
      const [request, content] = [requestKey(), contentKey()];
      const first = onTerms({ content });
      await accept(first);
      await test.sql(`UPDATE once_key SET expires_at = now() + interval '5 s' WHERE key = $1`, [content.key]);
      const sweepLate = before('find-once-keys', async () => {
        await eventually(async () => {
          const [row] = await test.sql('SELECT FROM once_key WHERE key = $1 AND expires_at <= now()', [content.key]);
          return row !== undefined;
        }, 'its time to be over');
        await sweepOnceKeys(test.postgres, 0, 1000);
      });
      const { decisions } = await acceptWith(sweepLate, version, [onTerms({ request, content, expiresAt })], toBroker);
      expect(decisions).toEqual([duplicateOf(first.id)]);
    });
  }
});

describe('accepting on terms, with several at once', () => {
  it('gives each key to one of many, over two connection pools, without a deadlock', async () => {
    const prepared = await real.prepare();
    const processes = await Promise.all([TestLedger.open(prepared.settings), TestLedger.open(prepared.settings)]);
    const keys = Array.from({ length: 20 }, () => randomUUID());
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, nr) => {
        const items = keys.map((key) =>
          onTerms({ request: nr % 4 < 2 ? requestKey(key) : requestKey(), content: contentKey(key) }),
        );
        if (nr % 2) items.reverse(); // in any order: no deadlock
        return processes[nr % 2]!.acceptAll(items);
      }),
    );
    const accepted = results.flatMap(({ decisions }) => decisions).filter(({ kind }) => kind === 'accepted');
    expect(accepted).toHaveLength(keys.length);
    const [row] = await processes[0].sql<{ count: string }>('SELECT count(*) FROM notification');
    expect(Number(row!.count)).toBe(keys.length);
    await Promise.all(processes.map((process) => process.close()));
    await prepared.release();
  });
});

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { isDataError } from '../../src/infra/postgres/postgres-errors.js';
import type { AcceptedOnTerms, OnceKey, Verdict } from '../../src/ledger/accept-on-terms.js';
import type { Replacement } from '../../src/ledger/replace-scheduled.js';
import { eventually } from '../support/eventually.js';
import { newNotification, TestLedger, toBroker } from '../support/ledger.js';
import { real, stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

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

  const publishKey = (key: string = randomUUID(), more: Partial<OnceKey> = {}): OnceKey => ({
    application: 'tester',
    operation: 'publish',
    key,
    requestHash: 'hash',
    keepSeconds: 600,
    ...more,
  });
  const contentKey = (key: string = randomUUID()): OnceKey => ({
    application: '',
    operation: 'deduplicate',
    key,
    requestHash: null,
    keepSeconds: 600,
  });
  const onTerms = (keys: OnceKey[], more: Partial<AcceptedOnTerms> = {}): AcceptedOnTerms => ({
    ...newNotification(1),
    keys,
    notBefore: null,
    expiresAt: null,
    ...more,
  });
  const accept = async (...items: AcceptedOnTerms[]): Promise<Verdict[]> =>
    (await test.ledger.acceptOnTerms(version, items, toBroker)).verdicts;

  async function statesOf(...items: { id: string }[]): Promise<string[][]> {
    const rows = await test.sql<{ notification_id: string; state: string }>(
      'SELECT notification_id, state FROM delivery WHERE notification_id = ANY ($1::uuid[])',
      [items.map(({ id }) => id)],
    );
    return items.map(({ id }) => rows.filter((row) => row.notification_id === id).map((row) => row.state));
  }

  const keysLeadingTo = (id: string) =>
    test.sql<{ operation: string }>('SELECT operation FROM request_key WHERE result_id = $1 ORDER BY operation', [id]);

  const forQueue: Verdict = { kind: 'accepted', handedTo: 'queue' };
  const met = (operation: OnceKey['operation'], resultId: string, more: Partial<Verdict> = {}) => ({
    kind: 'met',
    operation,
    resultId,
    isDuplicate: false,
    requestHash: operation === 'deduplicate' ? null : 'hash',
    ...more,
  });

  it('happens once per key, and says what stands under a key that was taken', async () => {
    const key = publishKey();
    const [first, second] = [onTerms([key]), onTerms([{ ...key, requestHash: 'other' }])];
    expect(await accept(first)).toEqual([forQueue]);
    expect(await accept(second)).toEqual([met('publish', first.id)]);
    expect(await statesOf(first, second)).toEqual([['queued'], []]);
  });

  it('keeps the keys of applications and operations apart', async () => {
    const key = randomUUID();
    const items = [
      onTerms([publishKey(key)]),
      onTerms([publishKey(key, { application: 'another' })]),
      onTerms([publishKey(key, { operation: 'put' })]),
    ];
    expect(await accept(...items)).toEqual([forQueue, forQueue, forQueue]);
  });

  it('takes a key again once its time is over', async () => {
    const key = publishKey();
    const [first, second] = [onTerms([key]), onTerms([key])];
    await accept(first);
    await test.sql(`UPDATE request_key SET expires_at = now() WHERE key = $1`, [key.key]);
    expect(await accept(second)).toEqual([forQueue]);
    expect(await keysLeadingTo(second.id)).toHaveLength(1);
  });

  it('accepts the others of a batch in which some are met', async () => {
    const taken = publishKey();
    const first = onTerms([taken]);
    await accept(first);
    const batch = [onTerms([]), onTerms([taken]), onTerms([publishKey()]), onTerms([publishKey(), contentKey()])];
    expect(await accept(...batch)).toEqual([forQueue, met('publish', first.id), forQueue, forQueue]);
    expect(await statesOf(...batch)).toEqual([['queued'], [], ['queued'], ['queued']]);
  });

  it('leaves no key behind of a content that was not published because its request had been made before', async () => {
    const [request, content] = [publishKey(), contentKey()];
    const first = onTerms([request]);
    await accept(first);
    const repeated = onTerms([request, content]);
    expect(await accept(repeated)).toEqual([met('publish', first.id)]);
    expect(await keysLeadingTo(repeated.id)).toEqual([]);
    expect(await accept(onTerms([content]))).toEqual([forQueue]);
  });

  it('lets a request for content seen before lead to the first, when it is repeated as well', async () => {
    const [content, request] = [contentKey(), publishKey()];
    const first = onTerms([content]);
    await accept(first);
    expect(await accept(onTerms([request, content]))).toEqual([met('deduplicate', first.id)]);
    const again = await accept(onTerms([request, content]));
    expect(again).toEqual([met('publish', first.id, { isDuplicate: true })]);
  });

  it('lets any number of the same content in one batch lead to the first', async () => {
    const content = contentKey();
    const first = onTerms([content]);
    await accept(first);
    const batch = Array.from({ length: 50 }, (_, nr) => onTerms(nr % 2 ? [content] : [publishKey(), content]));
    expect(await accept(...batch)).toEqual(batch.map(() => met('deduplicate', first.id)));
  });

  it('writes neither key nor notification of a batch that fails', async () => {
    const items = [onTerms([publishKey()]), onTerms([publishKey(), contentKey()], { body: 'a\0b' })];
    const error: unknown = await accept(...items).catch((cause: unknown) => cause);
    expect(isDataError(error)).toBe(true);
    for (const item of items) expect(await keysLeadingTo(item.id)).toEqual([]);
    expect(await statesOf(...items)).toEqual([[], []]);
  });

  it('writes neither key nor notification when the catalogue has moved on', async () => {
    const item = onTerms([publishKey(), contentKey()]);
    const answer = await test.ledger.acceptOnTerms(version - 1, [item], toBroker);
    expect(answer).toMatchObject({ version, verdicts: [] });
    expect(await keysLeadingTo(item.id)).toEqual([]);
    expect(await statesOf(item)).toEqual([[]]);
  });

  it('records what is too old as expired, and what is for later as waiting until then', async () => {
    const now = Date.now();
    const items = [
      onTerms([], { expiresAt: now - 1000 }),
      onTerms([], { expiresAt: now + 60_000 }),
      onTerms([], { notBefore: now + 60_000 }),
      onTerms([], { notBefore: now - 60_000 }),
    ];
    const handedTo = (await accept(...items)).map((verdict) => verdict.kind === 'accepted' && verdict.handedTo);
    expect(handedTo).toEqual(['nobody', 'queue', 'later', 'queue']);
    expect(await statesOf(...items)).toEqual([['expired'], ['queued'], ['waiting'], ['queued']]);
    const [later] = await test.sql<{ next_at: Date }>('SELECT next_at FROM delivery WHERE notification_id = $1', [
      items[2]!.id,
    ]);
    expect(later!.next_at.getTime()).toBe(now + 60_000);
  });

  it('forgets keys whose time is over, and only those', async () => {
    const [over, kept] = [publishKey(), publishKey()];
    await accept(onTerms([over]), onTerms([kept]));
    await test.sql('UPDATE request_key SET expires_at = now() WHERE key = $1', [over.key]);
    await test.ledger.sweepKeys();
    const left = await test.sql<{ key: string }>('SELECT key FROM request_key WHERE key = ANY ($1::text[])', [
      [over.key, kept.key],
    ]);
    expect(left).toEqual([{ key: kept.key }]);
  });

  describe('replacing what is scheduled', () => {
    const inAMinute = () => Date.now() + 60_000;
    const scheduled = async (subscriptions = 2): Promise<{ key: string; id: string }> => {
      const key = publishKey(randomUUID(), { operation: 'put' });
      const item = onTerms([key], { ...newNotification(subscriptions), notBefore: inAMinute() });
      await accept(item);
      return { key: key.key, id: item.id };
    };
    const replacement = (key: string, more: Partial<Replacement> = {}): Replacement => ({
      application: 'tester',
      key,
      requestHash: 'other',
      keepSeconds: 600,
      channel: 'cases',
      body: '{"new":true}',
      notBefore: inAMinute(),
      expiresAt: null,
      subscriptionIds: [randomUUID()],
      ...more,
    });

    it('puts text, time and subscriptions in the place of the former ones', async () => {
      const { key, id } = await scheduled();
      expect(await test.ledger.replaceScheduled(version, replacement(key))).toEqual({ kind: 'replaced', id });
      expect(await statesOf({ id })).toEqual([['waiting']]);
      expect((await test.ledger.bodies([id])).get(id)).toBe('{"new":true}');
      expect(await accept(onTerms([publishKey(key, { operation: 'put', requestHash: 'other' })]))).toEqual([
        met('put', id, { requestHash: 'other' } as Partial<Verdict>),
      ]);
    });

    it('makes it due at once when the new content is for now', async () => {
      await test.clear();
      const { key, id } = await scheduled();
      await test.ledger.replaceScheduled(version, replacement(key, { notBefore: null }));
      const { deliveries } = await test.leases.claimDue(10, null);
      expect(deliveries.map(({ notificationId, body }) => [notificationId, body])).toEqual([[id, '{"new":true}']]);
      expect(await test.ledger.replaceScheduled(version, replacement(key))).toEqual({ kind: 'sent' });
    });

    it('does not replace what was handed out, not even in part', async () => {
      const { key, id } = await scheduled();
      await test.sql(
        `UPDATE delivery SET next_at = now() WHERE (notification_id, subscription_id) IN
           (SELECT notification_id, subscription_id FROM delivery WHERE notification_id = $1 LIMIT 1)`,
        [id],
      );
      const { deliveries } = await test.leases.claimDue(100, null);
      expect(deliveries.filter(({ notificationId }) => notificationId === id)).toHaveLength(1);
      expect(await test.ledger.replaceScheduled(version, replacement(key))).toEqual({ kind: 'sent' });
    });

    it('replaces what ended without having been sent', async () => {
      const { key, id } = await scheduled();
      const [{ subscription_id: subscriptionId }] = (await test.sql<{ subscription_id: string }>(
        'SELECT subscription_id FROM delivery WHERE notification_id = $1',
        [id],
      )) as [{ subscription_id: string }];
      await test.ledger.cancel({ notificationId: id, subscriptionId });
      expect(await test.ledger.replaceScheduled(version, replacement(key))).toEqual({ kind: 'replaced', id });
    });

    it('leaves to its own publisher what a key stands for as a duplicate', async () => {
      const content = contentKey();
      const first = onTerms([content], { notBefore: inAMinute(), publisher: 'another' });
      await accept(first);
      const key = publishKey(randomUUID(), { operation: 'put' });
      expect(await accept(onTerms([key, content]))).toEqual([met('deduplicate', first.id)]);
      expect(await test.ledger.replaceScheduled(version, replacement(key.key))).toEqual({ kind: 'sent' });
      expect(await statesOf(first)).toEqual([['waiting']]);
    });

    it('says so when it was matched with an older catalogue', async () => {
      const { key, id } = await scheduled(3);
      const answer = await test.ledger.replaceScheduled(version - 1, replacement(key));
      expect(answer).toEqual({ kind: 'outdated', version });
      expect(await statesOf({ id })).toEqual([['waiting', 'waiting', 'waiting']]);
    });

    it('is either replaced or handed out, however the two fall together', async () => {
      for (let round = 0; round < 20; round++) {
        await test.clear();
        const { key, id } = await scheduled(3);
        await test.sql('UPDATE delivery SET next_at = now()');
        const [replaced, first] = await Promise.all([
          test.ledger.replaceScheduled(version, replacement(key, { notBefore: null })),
          test.leases.claimDue(10, null),
        ]);
        const second = await test.leases.claimDue(10, null);
        const bodies = [...first.deliveries, ...second.deliveries].map(({ body }) => body);
        expect([replaced.kind, bodies]).toEqual(
          replaced.kind === 'replaced' ? ['replaced', ['{"new":true}']] : ['sent', ['{}', '{}', '{}']],
        );
        expect(await statesOf({ id })).toEqual([bodies.map(() => 'queued')]);
      }
    });
  });
});

describe('accepting on terms, with several at once', () => {
  it('gives each key to one of many, over two connection pools, without a deadlock', async () => {
    const prepared = await real.prepare();
    const processes = await Promise.all([TestLedger.open(prepared.settings), TestLedger.open(prepared.settings)]);
    const version = await processes[0].catalogueVersion();
    const keys = Array.from({ length: 20 }, () => randomUUID());
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, nr) => {
        const items = keys.map((key) => ({
          ...newNotification(1),
          keys: [{ application: '', operation: 'deduplicate' as const, key, requestHash: null, keepSeconds: 60 }],
          notBefore: null,
          expiresAt: null,
        }));
        if (nr % 2) items.reverse(); // in whatever order they come: no deadlock
        return processes[nr % 2]!.ledger.acceptOnTerms(version, items, toBroker);
      }),
    );
    const accepted = results.flatMap(({ verdicts }) => verdicts).filter(({ kind }) => kind === 'accepted');
    expect(accepted).toHaveLength(keys.length);
    await eventually(async () => {
      const [row] = await processes[0].sql<{ count: string }>('SELECT count(*) FROM notification');
      return Number(row!.count) === keys.length;
    }, 'one notification for each key');
    await Promise.all(processes.map((process) => process.close()));
    await prepared.release();
  });
});

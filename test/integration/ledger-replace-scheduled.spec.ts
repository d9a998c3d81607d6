import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { Accepted, Decision } from '../../src/ledger/acceptance.js';
import { cancel } from '../../src/ledger/cancel.js';
import { deadStates, type DeliveryKey } from '../../src/ledger/delivery.js';
import { endMany } from '../../src/ledger/end-many.js';
import { lineUpDue } from '../../src/ledger/line-up.js';
import { dayOfId } from '../../src/ledger/partitions.js';
import { replaceScheduled, type Replacement } from '../../src/ledger/replace-scheduled.js';
import { newNotification, TestLedger } from '../support/ledger.js';
import { contentKey, onTerms, requestKey } from '../support/once-keys.js';
import { stacks } from '../support/stacks.js';

Logger.overrideLogger(false);

describe.each(stacks)('replacing a scheduled notification on the $name stack', (stack) => {
  let test: TestLedger;
  let version: number;

  beforeAll(async () => {
    test = await TestLedger.on(stack);
    version = await test.catalogueVersion();
  });
  afterAll(() => test.close());

  const accept = async (...items: Accepted[]): Promise<Decision[]> => (await test.acceptAll(items)).decisions;
  const replace = (replacement: Replacement, matchedWith = version) =>
    replaceScheduled(test.postgres, matchedWith, replacement);
  const inAMinute = () => Date.now() + 60_000;
  const putKey = (key: string = randomUUID(), requestHash = 'hash') =>
    requestKey(key, { operation: 'put', requestHash });

  async function scheduled(subscriptions = 2): Promise<{ key: string; id: string }> {
    const request = putKey();
    const item = onTerms({ ...newNotification(subscriptions), request, notBefore: inAMinute() });
    await accept(item);
    return { key: request.key, id: item.id };
  }

  const replacement = (key: string, more: Partial<Replacement> = {}): Replacement => ({
    request: putKey(key, 'other'),
    content: null,
    channel: 'cases',
    body: '{"new":true}',
    traceParent: null,
    notBefore: inAMinute(),
    expiresAt: null,
    subscriptionIds: [randomUUID()],
    inOrder: null,
    ...more,
  });

  async function statesOf({ id }: { id: string }): Promise<string[]> {
    const rows = await test.sql<{ state: string }>('SELECT state FROM delivery WHERE notification_id = $1', [id]);
    return rows.map(({ state }) => state);
  }

  it('has the digest written anew that says what is in it', async () => {
    const { key, id } = await scheduled();
    const other = await scheduled();
    await test.sql('INSERT INTO digest (from_id, to_id, bits) SELECT id, id, $2 FROM unnest($1::uuid[]) AS n (id)', [
      [id, other.id],
      Buffer.alloc(8000),
    ]);
    expect((await replace(replacement(key))).kind).toBe('replaced');
    const digests = await test.sql('SELECT from_id FROM digest WHERE is_stale AND bits IS NULL');
    expect(digests).toEqual([{ from_id: id }]);
    await test.sql('DELETE FROM digest');
  });

  /** Hands out what is due, as the dispatcher does. @returns the text of each */
  async function handOutDue(most = 100): Promise<{ id: string; body: string }[]> {
    const answer = (await test.sql(
      `WITH due AS MATERIALIZED (
         SELECT notification_id, subscription_id FROM delivery WHERE state = 'waiting' AND next_at <= now()
         ORDER BY next_at LIMIT $1 FOR UPDATE SKIP LOCKED
       ),
       handed_out AS (
         UPDATE delivery d SET state = 'queued', generation = generation + 1, next_at = NULL, queued_at = now() FROM due
         WHERE d.notification_id = due.notification_id AND d.subscription_id = due.subscription_id
         RETURNING d.notification_id
       )
       SELECT id, body FROM handed_out JOIN notification ON id = notification_id`,
      [most],
    )) as { id: string; body: string }[];
    return answer;
  }

  it('has the new content line up when it is due, for those subscriptions that keep order', async () => {
    await test.clear();
    const { key, id } = await scheduled();
    const [ordered, other] = [randomUUID(), randomUUID()];
    const inOrder = { objectKey: randomUUID(), subscriptionIds: new Set([ordered]) };
    await replace(replacement(key, { subscriptionIds: [ordered, other], inOrder }));
    await test.sql('UPDATE delivery SET next_at = now() WHERE notification_id = $1', [id]);
    expect((await lineUpDue(test.postgres, 10)).count).toBe(1);
    expect(await test.sql('SELECT subscription_id, notification_id FROM turn')).toEqual([
      { subscription_id: ordered, notification_id: id },
    ]);
    expect(
      await test.sql('SELECT turn_nr FROM delivery WHERE notification_id = $1 ORDER BY object_key NULLS LAST', [id]),
    ).toEqual([{ turn_nr: '0' }, { turn_nr: null }]);
  });

  it.each<[string, (delivery: DeliveryKey) => Promise<unknown>]>([
    ['has lined up, because it became due while the replacement waited', () => Promise.resolve()],
    ['ended with the turn of its object, which is not passed on yet', (delivery) => cancel(test.postgres, delivery)],
  ])('does not replace a notification that %s: its turn would be left behind', async (_, then) => {
    await test.clear();
    const [request, subscriptionId] = [putKey(), randomUUID()];
    const inOrder = { objectKey: randomUUID(), subscriptionIds: new Set([subscriptionId]) };
    const terms = { subscriptionIds: [subscriptionId], inOrder };
    const item = onTerms({ ...newNotification(), ...terms, request, notBefore: inAMinute() });
    await accept(item);
    const { id } = item;
    await test.sql('UPDATE delivery SET next_at = now() WHERE notification_id = $1', [id]);
    expect((await lineUpDue(test.postgres, 10)).count).toBe(1);
    await then({ notificationId: id, subscriptionId });
    const other = { ...inOrder, objectKey: randomUUID() };
    expect(await replace(replacement(request.key, { ...terms, inOrder: other }))).toEqual({ kind: 'sent' });
  });

  it.each([
    ['none', null],
    ['one that is past', Date.now() - 3_600_000],
  ])('makes it due now where the new moment is %s, as publishing does', async (_, notBefore) => {
    const { key, id } = await scheduled();
    const before = await test.now();
    expect((await replace(replacement(key, { notBefore }))).kind).toBe('replaced');
    const [row] = await test.sql<{ ms: number; is_due: boolean }>(
      `SELECT (extract(epoch FROM next_at) * 1000)::float8 AS ms, next_at <= now() AS is_due FROM delivery WHERE notification_id = $1`,
      [id],
    );
    expect(row!.ms).toBeGreaterThanOrEqual(before);
    expect(row!.is_due).toBe(true);
  });

  it('replaces text, time and subscriptions', async () => {
    const { key, id } = await scheduled();
    expect(await replace(replacement(key))).toEqual({ kind: 'replaced', notificationId: id });
    expect(await statesOf({ id })).toEqual(['waiting']);
    expect(await test.sql('SELECT body FROM notification WHERE id = $1', [id])).toEqual([{ body: '{"new":true}' }]);
    expect(await accept(onTerms({ request: putKey(key, 'other') }))).toEqual([
      { kind: 'repeated', requestHash: 'other', notificationId: id, isDuplicate: false },
    ]);
  });

  it('makes it due at once when the new content is for now', async () => {
    await test.clear();
    const { key, id } = await scheduled();
    await replace(replacement(key, { notBefore: null }));
    expect(await handOutDue()).toEqual([{ id, body: '{"new":true}' }]);
    expect(await replace(replacement(key))).toEqual({ kind: 'sent' });
  });

  it('does not replace a notification of which any delivery was handed out', async () => {
    await test.clear();
    const { key, id } = await scheduled();
    await test.sql(
      `UPDATE delivery SET next_at = now() WHERE (notification_id, subscription_id) IN
         (SELECT notification_id, subscription_id FROM delivery WHERE notification_id = $1 LIMIT 1)`,
      [id],
    );
    expect(await handOutDue()).toHaveLength(1);
    expect(await replace(replacement(key))).toEqual({ kind: 'sent' });
  });

  it('replaces a notification that ended without having been sent', async () => {
    const { key, id } = await scheduled();
    await test.sql(
      `UPDATE delivery SET state = 'cancelled', generation = generation + 1, next_at = NULL, ended_at = now()
       WHERE notification_id = $1`,
      [id],
    );
    expect(await replace(replacement(key))).toEqual({ kind: 'replaced', notificationId: id });
  });

  it.each([
    ['replaces a notification of which a delivery died unsent', 'failed', 'replaced'],
    ['does not replace a notification of which a delivery is unknown, as it may have been called', 'unknown', 'sent'],
  ] as const)('%s, also when an operator has closed that', async (_, state, kind) => {
    const { key, id } = await scheduled();
    const [dead] = await test.sql<{ subscriptionId: string }>(
      `SELECT subscription_id AS "subscriptionId" FROM delivery WHERE notification_id = $1 LIMIT 1`,
      [id],
    );
    const keys = [{ notificationId: id, ...dead! }];
    await test.sql(
      `UPDATE delivery SET state = $3, generation = generation + 1, next_at = NULL, ended_at = now()
       WHERE notification_id = $1 AND subscription_id = $2`,
      [id, dead!.subscriptionId, state],
    );
    const close = { states: deadStates, replay: randomUUID() };
    expect(await test.postgres.transaction((query) => endMany(query, dayOfId(id), keys, close))).toBe(1);
    expect((await statesOf({ id })).sort()).toEqual(['cancelled', 'waiting']);
    expect((await replace(replacement(key))).kind).toBe(kind);
  });

  it('does not replace the notification that a key leads to as a duplicate: it is another publisher’s', async () => {
    const content = contentKey();
    const first = onTerms({ content, notBefore: inAMinute(), publisher: 'another' });
    await accept(first);
    const request = putKey();
    expect(await accept(onTerms({ request, content }))).toEqual([{ kind: 'duplicate', notificationId: first.id }]);
    expect(await replace(replacement(request.key))).toEqual({ kind: 'sent' });
    expect(await statesOf(first)).toEqual(['waiting']);
  });

  describe('with content that is published once', () => {
    it('has the next one with that content be a duplicate', async () => {
      const { key, id } = await scheduled();
      const content = contentKey();
      expect(await replace(replacement(key, { content, notBefore: null }))).toEqual({
        kind: 'replaced',
        notificationId: id,
      });
      expect(await accept(onTerms({ content }))).toEqual([{ kind: 'duplicate', notificationId: id }]);
    });

    it('sends neither the former content nor the new one where that was published before', async () => {
      await test.clear();
      const content = contentKey();
      const first = onTerms({ content });
      await accept(first);
      const { key, id } = await scheduled();
      const duplicate = { kind: 'duplicate', notificationId: first.id, withdrawnId: id };
      expect(await replace(replacement(key, { content, notBefore: null }))).toEqual(duplicate);
      expect(await statesOf({ id })).toEqual(['cancelled', 'cancelled']);
      expect(await test.sql('SELECT body FROM notification WHERE id = $1', [id])).toEqual([{ body: null }]);
      expect(await accept(onTerms({ request: putKey(key, 'other') }))).toEqual([
        { kind: 'repeated', requestHash: 'other', notificationId: first.id, isDuplicate: true },
      ]);
      expect(await replace(replacement(key, { content: contentKey() }))).toEqual({ kind: 'sent' });
      expect(await accept(onTerms({ content }))).toEqual([{ kind: 'duplicate', notificationId: first.id }]);
    });

    it('is a first one again when the time of the former first one is over', async () => {
      const content = contentKey();
      await accept(onTerms({ content }));
      await test.sql('UPDATE once_key SET expires_at = now() WHERE key = $1', [content.key]);
      const { key, id } = await scheduled();
      expect((await replace(replacement(key, { content, notBefore: null }))).kind).toBe('replaced');
      expect(await accept(onTerms({ content }))).toEqual([{ kind: 'duplicate', notificationId: id }]);
    });

    it('is no first one where it is too old to be sent, and still a duplicate of one', async () => {
      const [content, expiresAt] = [contentKey(), Date.now() - 60_000];
      const tooOld = { content, notBefore: null, expiresAt };
      expect((await replace(replacement((await scheduled()).key, tooOld))).kind).toBe('replaced');
      const first = onTerms({ content });
      expect(await accept(first)).toMatchObject([{ kind: 'accepted' }]);
      expect(await replace(replacement((await scheduled()).key, tooOld))).toMatchObject({
        kind: 'duplicate',
        notificationId: first.id,
      });
    });

    it('reserves nothing where it comes too late', async () => {
      const [{ key, id }, content] = [await scheduled(), contentKey()];
      await test.sql('UPDATE notification SET not_before = now() WHERE id = $1', [id]);
      expect(await replace(replacement(key, { content }))).toEqual({ kind: 'sent' });
      expect(await accept(onTerms({ content }))).toMatchObject([{ kind: 'accepted' }]);
    });

    it('is sent once when it is published at the same time', async () => {
      for (let round = 0; round < 20; round++) {
        const [{ key, id }, content] = [await scheduled(1), contentKey()];
        const published = onTerms({ request: requestKey(), content });
        const [replaced, [decision]] = await Promise.all([
          replace(replacement(key, { content, notBefore: null })),
          accept(published),
        ]);
        const first = replaced.kind === 'replaced' ? id : published.id;
        expect([replaced, decision]).toMatchObject(
          first === id
            ? [{ kind: 'replaced' }, { kind: 'duplicate', notificationId: id }]
            : [{ kind: 'duplicate', notificationId: published.id }, { kind: 'accepted' }],
        );
      }
    });
  });

  it('says so when it was matched with an older catalogue', async () => {
    const { key, id } = await scheduled(3);
    expect(await replace(replacement(key), version - 1)).toEqual({ kind: 'outdated', version });
    expect(await statesOf({ id })).toEqual(['waiting', 'waiting', 'waiting']);
  });

  it('does not replace a notification whose day was dropped, and leaves the connection usable', async () => {
    const { key, id } = await scheduled();
    const dropped = uuidv7({ msecs: Date.now() - 40 * 86_400_000 });
    await test.sql('UPDATE once_key SET result_id = $2 WHERE key = $1', [key, dropped]);
    expect(await replace(replacement(key))).toEqual({ kind: 'sent' });
    await test.sql('UPDATE once_key SET result_id = $2 WHERE key = $1', [key, id]);
    expect(await replace(replacement(key))).toEqual({ kind: 'replaced', notificationId: id });
  });

  it('is either replaced or handed out when both happen at the same time', async () => {
    for (let round = 0; round < 20; round++) {
      await test.clear();
      const { key, id } = await scheduled(3);
      await test.sql('UPDATE delivery SET next_at = now()');
      const [replaced, first] = await Promise.all([replace(replacement(key, { notBefore: null })), handOutDue(10)]);
      const bodies = [...first, ...(await handOutDue(10))].map(({ body }) => body);
      expect([replaced.kind, bodies]).toEqual(
        replaced.kind === 'replaced' ? ['replaced', ['{"new":true}']] : ['sent', ['{}', '{}', '{}']],
      );
      expect(await statesOf({ id })).toEqual(bodies.map(() => 'queued'));
    }
  });
});

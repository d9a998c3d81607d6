import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { canonicalName } from '../../src/channels/filter-names.js';
import { canonicalNameInSql, lettersOf, withoutFinalSigma } from '../../src/deliveries/canonical-name-in-sql.js';
import { digestCondition, type Criteria } from '../../src/deliveries/criteria.js';
import type { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { DeliveryReader } from '../../src/deliveries/delivery-reader.service.js';
import { errorClassCondition, errorClasses } from '../../src/deliveries/error-class.js';
import { candidates, type Sought } from '../../src/deliveries/search-statements.js';
import { LedgerSearch, type SearchBounds } from '../../src/deliveries/search.service.js';
import { mostNotifications, sweepDigests, writeDigests } from '../../src/digests/write-digests.js';
import { valuesOf, type Statement, type Values } from '../../src/infra/postgres/statement.js';
import type { DeliveryKey, DeliveryState } from '../../src/ledger/delivery.js';
import { systemClock } from '../../src/infra/clock.js';
import { outdateDigests } from '../../src/ledger/digests.js';
import {
  attachPartition,
  createPartition,
  lowestIdAt,
  partitionsBetween,
  timeOfId,
  type Partition,
} from '../../src/ledger/partitions.js';
import { NotificationReader, type NotificationPage } from '../../src/notifications/notification-reader.service.js';
import { classified } from '../support/classified-errors.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { TestLedger } from '../support/ledger.js';

Logger.overrideLogger(false);
const dayMs = 86_400_000;
const count = 4 * mostNotifications + 500;
const [even, odd, seldom] = [randomUUID(), randomUUID(), randomUUID()];
const owners = { [even]: 'alpha', [odd]: 'alpha', [seldom]: 'beta' };
const names = [
  'objectType',
  'object_type',
  'ObjectType',
  'a1B2',
  'a_1b_2',
  'XMLHttp',
  'eenNaam__x',
  'é',
  '_a_',
  'AB_CD',
  'naam 2_b',
  'ÉénId',
  'INITIALEN',
  'ΟΔΟΣ',
  'Straẞe',
  'ß',
  '\u212aelvin',
  'İD',
];

interface Model {
  id: string;
  channel: string;
  publisher: string;
  key: string | null;
  body: Record<string, unknown> & { kenmerken: Record<string, string> };
  deliveries: {
    subscriptionId: string;
    state: DeliveryState;
    attempts: number;
    lastStatus: number | null;
    lastError: string | null;
  }[];
}

/** The n-th notification, of which each has a millisecond of its own. */
function modelOf(n: number, firstMs: number): Model {
  const to = (subscriptionId: string) => {
    const hasFailed = n % 50 === 0;
    return {
      subscriptionId,
      state: hasFailed ? ('failed' as const) : ('delivered' as const),
      attempts: hasFailed ? 3 : 1,
      lastStatus: hasFailed ? 503 : 204,
      lastError: hasFailed ? 'HTTP 503' : null,
    };
  };
  const own = n % 500 === 499 ? [] : [to(n % 2 ? odd : even)];
  return {
    id: lowestIdAt(firstMs + n).replace('0000-0000-000000000000', '7000-8000-000000000000'),
    channel: n % 3 ? 'usual' : 'third',
    publisher: n % 1000 === 7 ? 'rare' : 'often',
    key: n % 400 === 3 ? `key-${n}` : null,
    body: {
      hoofdObject: `https://example.org/zaken/${Math.floor(n / 10)}`,
      resourceUrl: `https://example.org/"quoted"/${n}`,
      actie: n % 2 ? 'create' : 'update',
      kenmerken: {
        objectType: `type-${n % 7}`,
        zone: n % 900 === 1 ? 'rare: "zone"' : 'hoofdObject',
        ...(n % 800 === 11 && { puntX_y: 'letters' }),
        ...(n % 800 === 12 && { puntXY: 'letters' }),
        ...(n % 800 === 13 && { ÉénId: 'letters' }),
        ...(n % 800 === 14 && { ΟΔΟΣ: 'letters' }),
      },
    },
    deliveries: [...own, ...(n % 1000 === 5 ? [to(seldom)] : [])],
  };
}

/** It knows of no TLS identity, as nothing here has one. */
const noDirectory = { find: () => undefined } as unknown as SubscriptionDirectory;

/** On a database of its own. */
async function openReader() {
  const place = await createDatabase();
  const test = await TestLedger.open({ DATABASE_URL: place.url });
  const search = new LedgerSearch(test.postgres);
  const reader = new NotificationReader(test.postgres, search, new DeliveryReader(test.postgres, search), noDirectory);
  return { place, test, search, reader };
}

describe('finding notifications and deliveries', () => {
  let place: TestDatabase;
  let test: TestLedger;
  let search: LedgerSearch;
  let reader: NotificationReader;
  let all: Model[];
  let nowMs: number;
  /** How little one call may search; the usual bounds are more than all there is. */
  const scarce: SearchBounds = { rows: 1500, blocks: 2, digests: 3, owned: 1, bytes: 10_000 };

  beforeAll(async () => {
    ({ place, test, search, reader } = await openReader());
    nowMs = await test.now();
    all = Array.from({ length: count }, (_, n) => modelOf(n, nowMs - 3_600_000));
    await test.sql(
      `INSERT INTO subscription (id, owner_client_id, callback_url, auth, channels, version)
       SELECT id::uuid, owner, 'https://receiver.example/hook', '', '[]', 1 FROM json_each_text($1) AS s (id, owner)`,
      [JSON.stringify(owners)],
    );
    await test.sql(
      `INSERT INTO notification (id, channel, publisher, request_key, body)
       SELECT id, channel, publisher, key, body::text FROM json_to_recordset($1) AS n (id uuid, channel text, publisher text, key text, body json)`,
      [JSON.stringify(all)],
    );
    const deliveries = all.flatMap(({ id, deliveries: of }) => of.map((each) => ({ id, ...each })));
    await test.sql(
      `INSERT INTO delivery (notification_id, subscription_id, state, attempts, last_status, last_error)
       SELECT id, "subscriptionId", state, attempts, "lastStatus", "lastError" FROM json_to_recordset($1)
         AS d (id uuid, "subscriptionId" uuid, state delivery_state, attempts int, "lastStatus" int, "lastError" text)`,
      [JSON.stringify(deliveries)],
    );
    await writeDigests(test.postgres, nowMs, new AbortController().signal, systemClock);
    await test.sql('ANALYZE');
  });

  afterAll(async () => {
    await test.close();
    await place.drop();
  });

  const digests = () =>
    test.sql<{ from_id: string; is_stale: boolean; has_bits: boolean }>(
      'SELECT from_id, is_stale, bits IS NOT NULL AS has_bits FROM digest ORDER BY from_id',
    );

  async function found(sought: Sought, criteria: Criteria, limit: number, bounds?: SearchBounds): Promise<string[]> {
    const keys: DeliveryKey[] = [];
    let after: DeliveryKey | undefined;
    do {
      const page = await search.find(sought, criteria, after, limit, bounds);
      expect(page.keys.length).toBeLessThanOrEqual(limit);
      expect(page.searchedTo === undefined || page.next !== undefined).toBe(true);
      keys.push(...page.keys);
      after = page.next;
    } while (after);
    return keys.map(({ notificationId, subscriptionId }) =>
      sought === 'delivery' ? `${notificationId}/${subscriptionId}` : notificationId,
    );
  }

  /** The result of a look at each of them. */
  function expected(sought: Sought, criteria: Criteria): string[] {
    return all
      .toReversed()
      .filter((model) => fits(model, criteria))
      .flatMap((model) => {
        const of = model.deliveries.filter((delivery) => deliveryFits(delivery, criteria));
        if (sought === 'delivery')
          return of
            .map(({ subscriptionId }) => `${model.id}/${subscriptionId}`)
            .sort()
            .reverse();
        return isAboutDelivery(criteria) && of.length === 0 ? [] : [model.id];
      });
  }

  const isAboutDelivery = ({ subscriptionId, owner, state, minAttempts, lastStatus, errorClass }: Criteria) =>
    [subscriptionId, owner, state, minAttempts, lastStatus, errorClass].some((value) => value !== undefined);

  const is = (wanted: unknown, value: unknown): boolean => wanted === undefined || wanted === value;

  const fits = ({ id, channel, publisher, key, body, deliveries }: Model, criteria: Criteria): boolean =>
    is(criteria.notificationId, id) &&
    is(criteria.channel, channel) &&
    is(criteria.publisher, publisher) &&
    is(criteria.key, key) &&
    is(criteria.mainObject, body['hoofdObject']) &&
    is(criteria.resourceUrl, body['resourceUrl']) &&
    is(criteria.action, body['actie']) &&
    (!criteria.isUnmatched || deliveries.length === 0) &&
    (criteria.from === undefined || id >= criteria.from) &&
    (criteria.before === undefined || id < criteria.before) &&
    (criteria.characteristics ?? []).every(({ name, value }) =>
      Object.entries(body.kenmerken).some(([own, its]) => canonicalName(own) === canonicalName(name) && its === value),
    );

  const deliveryFits = (delivery: Model['deliveries'][0], criteria: Criteria): boolean =>
    is(criteria.subscriptionId, delivery.subscriptionId) &&
    is(criteria.owner, owners[delivery.subscriptionId]) &&
    is(criteria.state, delivery.state) &&
    is(criteria.lastStatus, delivery.lastStatus) &&
    delivery.attempts >= (criteria.minAttempts ?? 0) &&
    (criteria.errorClass === undefined || (criteria.errorClass === 'status-5xx' && delivery.state === 'failed'));

  const at = (n: number) => lowestIdAt(nowMs - 3_600_000 + n);
  const of: [string, () => Criteria][] = [
    ['everything', () => ({})],
    ['an id', () => ({ notificationId: all[1234]!.id })],
    ['a channel', () => ({ channel: 'third' })],
    ['a channel that there is not', () => ({ channel: 'none' })],
    ['a publisher that is rare', () => ({ publisher: 'rare' })],
    ['a main object', () => ({ mainObject: 'https://example.org/zaken/17' })],
    ['a main object that was never published', () => ({ mainObject: 'https://example.org/zaken/none' })],
    ['a value that stands in another field', () => ({ mainObject: 'hoofdObject' })],
    ['a resource with characters that JSON escapes', () => ({ resourceUrl: 'https://example.org/"quoted"/77' })],
    ['a resource that has no digest yet', () => ({ resourceUrl: `https://example.org/"quoted"/${count - 1}` })],
    ['an action', () => ({ action: 'update' })],
    ['a characteristic, in another spelling', () => ({ characteristics: [{ name: 'object_type', value: 'type-3' }] })],
    [
      'two characteristics',
      () => ({
        characteristics: [
          { name: 'ObjectType', value: 'type-1' },
          { name: 'zone', value: 'rare: "zone"' },
        ],
      }),
    ],
    ['two that never come together', () => ({ channel: 'third', characteristics: [{ name: 'zone', value: 'none' }] })],
    ['a key', () => ({ key: 'key-403' })],
    ['a time', () => ({ from: at(700), before: at(1900) })],
    ['a time and an action', () => ({ from: at(700), before: at(1900), action: 'create' })],
    ['a subscription', () => ({ subscriptionId: even })],
    ['a subscription that is rare', () => ({ subscriptionId: seldom })],
    ['a subscription that there is not', () => ({ subscriptionId: randomUUID() })],
    ['an owner', () => ({ owner: 'beta' })],
    ['an owner of several subscriptions', () => ({ owner: 'alpha' })],
    ['an owner of several, and a channel', () => ({ owner: 'alpha', channel: 'third' })],
    ['an owner of none', () => ({ owner: 'gamma' })],
    ['a state', () => ({ state: 'failed' })],
    ['a state and a subscription', () => ({ state: 'failed', subscriptionId: odd })],
    ['a state and an action', () => ({ state: 'failed', action: 'update' })],
    ['a state, a subscription and a channel', () => ({ state: 'failed', subscriptionId: even, channel: 'third' })],
    ['a state that is no index', () => ({ state: 'delivered', owner: 'beta' })],
    ['attempts', () => ({ minAttempts: 3 })],
    ['a status', () => ({ lastStatus: 503 })],
    ['a status in a state', () => ({ state: 'failed', lastStatus: 500 })],
    ['an error class', () => ({ errorClass: 'status-5xx' })],
    [
      'an error class of a channel at a time',
      () => ({ errorClass: 'status-5xx', channel: 'third', from: at(100), before: at(3000) }),
    ],
  ];

  it('writes a digest for each full block, and none for what is left', async () => {
    const written = await digests();
    expect(written.map(({ from_id }) => from_id)).toEqual([0, 1, 2, 3].map((nr) => all[nr * mostNotifications]!.id));
    expect(written.every(({ is_stale, has_bits }) => has_bits && !is_stale)).toBe(true);
  });

  it.each(of)('finds each once, from the newest to the oldest, by %s', async (_, criteria) => {
    for (const sought of ['notification', 'delivery'] as const) {
      const wanted = expected(sought, criteria());
      expect(await found(sought, criteria(), 500)).toEqual(wanted);
      expect(await found(sought, criteria(), 199, scarce)).toEqual(wanted);
    }
  });

  it('finds what went to a subscription by the owner that it has now', async () => {
    const to = async (owner: string) => {
      await test.sql('UPDATE subscription SET owner_client_id = $2 WHERE id = $1', [seldom, owner]);
    };
    const wanted = expected('delivery', { owner: 'beta' });
    try {
      await to('gamma');
      for (const bounds of [undefined, scarce]) {
        expect(await found('delivery', { owner: 'gamma' }, 100, bounds)).toEqual(wanted);
        expect(await found('delivery', { owner: 'beta' }, 100, bounds)).toEqual([]);
      }
    } finally {
      await to('beta');
    }
  });

  it('finds those that matched nobody', async () => {
    const wanted = expected('notification', { isUnmatched: true });
    expect(wanted.length).toBeGreaterThan(5);
    expect(await found('notification', { isUnmatched: true }, 3, scarce)).toEqual(wanted);
  });

  it('says how far it looked, where it stopped before the page was full', async () => {
    const first = await search.find('delivery', { lastStatus: 418 }, undefined, 10, scarce);
    expect(first).toMatchObject({ keys: [], next: expect.anything() });
    expect(first.searchedTo).toEqual(new Date(timeOfId(first.next!.notificationId)));
    expect(first.next!.notificationId < all[count - 1000]!.id).toBe(true);
    expect(await search.find('delivery', { lastStatus: 418 }, undefined, 10)).toMatchObject({
      keys: [],
      next: undefined,
    });
  });

  it('reads no block that has not what is sought', async () => {
    for (const [criteria, most] of [
      [{ resourceUrl: 'https://example.org/"quoted"/77' }, 1],
      [{ resourceUrl: 'https://example.org/none' }, 0],
      [{ key: 'key-403', action: 'create' }, 1],
      [{ action: 'create' }, 4],
    ] as const) {
      const [statement, values] = candidates(digestCondition(criteria)!, { from: at(0), to: at(count) }, 10);
      const blocks = await test.sql(statement.text, valuesOf(statement, values));
      expect([criteria, blocks.length]).toEqual([criteria, most]);
    }
  });

  it('finds a notification by its new content as soon as it is replaced, and writes its digest anew', async () => {
    const { id, body } = all[1500]!;
    const changed = { ...body, hoofdObject: 'https://example.org/replaced' };
    await test.postgres.transaction((query) => outdateDigests(query, [id]));
    await test.sql('UPDATE notification SET body = $2 WHERE id = $1', [id, JSON.stringify(changed)]);
    const criteria = { mainObject: changed.hoofdObject };
    expect(await found('notification', criteria, 10)).toEqual([id]);
    expect((await digests()).map(({ is_stale }) => is_stale)).toEqual([false, true, false, false]);
    await writeDigests(test.postgres, nowMs, new AbortController().signal, systemClock);
    expect((await digests()).map(({ is_stale, has_bits }) => has_bits && !is_stale)).toEqual([true, true, true, true]);
    expect(await found('notification', criteria, 10)).toEqual([id]);
    await test.sql('UPDATE notification SET body = $2 WHERE id = $1', [id, JSON.stringify(body)]);
  });

  it('rests after each digest of what was published lately, and not while it is far behind', async () => {
    let time = 0;
    const rests: number[] = [];
    const clock = { now: () => (time += 10), pause: async (ms: number) => void rests.push(ms) };
    const writeAll = async (untilMs: number) => {
      await test.sql('DELETE FROM digest');
      await writeDigests(test.postgres, untilMs, new AbortController().signal, clock);
      expect(await digests()).toHaveLength(4);
    };
    await writeAll(nowMs);
    expect(rests).toEqual([]);
    await writeAll(nowMs - 3_600_000 + count);
    expect(rests).toEqual([30, 30, 30, 30]);
  });

  it('takes digests back after Postgres’ clock was set back, and finds what is accepted at a time that they had', async () => {
    const digestsUntil = (ms: number) => writeDigests(test.postgres, ms, new AbortController().signal, systemClock);
    await digestsUntil(nowMs - 3_600_000 + 1500);
    expect((await digests()).map(({ from_id }) => from_id)).toEqual([all[0]!.id]);
    const late = all[2500]!.id.replace('-8000-', '-9000-');
    const body = JSON.stringify({ hoofdObject: 'https://example.org/late' });
    await test.sql(`INSERT INTO notification (id, channel, publisher, body) VALUES ($1, 'usual', 'often', $2)`, [
      late,
      body,
    ]);
    await digestsUntil(nowMs);
    expect(await digests()).toHaveLength(4);
    expect(await found('notification', { mainObject: 'https://example.org/late' }, 10)).toEqual([late]);
    await test.sql('DELETE FROM notification WHERE id = $1', [late]);
    await digestsUntil(nowMs - 3_600_000 + 1500);
    await digestsUntil(nowMs);
  });

  it('takes many digests back in several transactions, the newest first', async () => {
    await test.sql('DELETE FROM digest');
    const early = Array.from({ length: 2001 }, (_, nr) => lowestIdAt(nowMs + (nr + 1) * 1000));
    await test.sql('INSERT INTO digest (from_id, to_id) SELECT id, id FROM unnest($1::uuid[]) AS early (id)', [early]);
    await test.sql(`
      CREATE TABLE taken_back (transaction text, digests int, oldest uuid);
      CREATE FUNCTION note_taken_back() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO taken_back SELECT pg_current_xact_id()::text, count(*), (array_agg(from_id ORDER BY from_id))[1] FROM gone;
        RETURN NULL;
      END $$;
      CREATE TRIGGER taken_back AFTER DELETE ON digest REFERENCING OLD TABLE AS gone
        FOR EACH STATEMENT EXECUTE FUNCTION note_taken_back()`);
    await writeDigests(test.postgres, nowMs, new AbortController().signal, systemClock);
    const taken = await test.sql<{ transaction: string; digests: number; oldest: string }>('SELECT * FROM taken_back');
    await test.sql('DROP TRIGGER taken_back ON digest; DROP FUNCTION note_taken_back; DROP TABLE taken_back');
    expect(new Set(taken.map(({ transaction }) => transaction)).size).toBe(taken.length);
    expect(taken.map(({ digests: of, oldest }) => [of, oldest])).toEqual([
      [1000, early[1001]],
      [1000, early[1]],
      [1, early[0]],
    ]);
    expect(await digests()).toHaveLength(4);
  });

  it('asks the digests for the subscriptions of an owner, however many of them were deleted before the oldest day', async () => {
    await test.sql(
      `INSERT INTO subscription (id, owner_client_id, callback_url, auth, channels, version, deleted_at)
       SELECT gen_random_uuid(), 'beta', 'https://receiver.example/hook', '', '[]', 1, now() - interval '400 days'
       FROM generate_series(1, 60)`,
    );
    const bounds = { rows: 600, blocks: 5, digests: 10, owned: 50, bytes: 1_000_000 };
    const { keys, searchedTo } = await new LedgerSearch(test.postgres).find(
      'notification',
      { owner: 'beta' },
      undefined,
      10,
      bounds,
    );
    await test.sql('DELETE FROM subscription WHERE deleted_at IS NOT NULL');
    expect(keys.map(({ notificationId }) => notificationId)).toEqual(
      [4005, 3005, 2005, 1005, 5].map((n) => all[n]!.id),
    );
    expect(searchedTo).toBeUndefined();
  });

  it('removes the digests of days that are gone, a limited number at a time, and no other', async () => {
    const left = await digests();
    const gone = [3, 2, 1].map((daysAgo) => modelOf(0, nowMs - 400 * dayMs - daysAgo * dayMs).id);
    await test.sql('INSERT INTO digest (from_id, to_id) SELECT id, id FROM unnest($1::uuid[]) AS gone (id)', [gone]);
    expect(await sweepDigests(test.postgres, 2)).toBe(2);
    expect((await digests())[0]).toMatchObject({ from_id: gone[2] });
    expect(await sweepDigests(test.postgres, 2)).toBe(1);
    expect(await digests()).toEqual(left);
  });

  it('removes the digest of a day that is gone between two that are there, and not of one that may come back', async () => {
    const left = await digests();
    const days = [410, 409, 408].map((daysAgo) => nowMs - daysAgo * dayMs);
    const partitions = days.map((ms) => partitionsBetween(ms, ms));
    const [first, middle, last] = days.map((ms) => modelOf(0, ms).id);
    for (const partition of partitions.flat()) await test.sql(createPartition(partition));
    await test.sql(
      `INSERT INTO notification (id, channel, publisher, body) SELECT unnest($1::uuid[]), 'old', 'tester', '{}'`,
      [[first, last]],
    );
    await test.sql('INSERT INTO digest (from_id, to_id) VALUES ($1, $1), ($2, $2), ($3, $3)', [first, middle, last]);
    for (const { table, name } of partitions[1]!) await test.sql(`ALTER TABLE ${table} DETACH PARTITION ${name}`);
    expect(await sweepDigests(test.postgres, 10)).toBe(0);
    const drop = (each: Partition[]) => test.sql(`DROP TABLE ${each.map(({ name }) => name).join(', ')}`);
    await drop(partitions[1]!);
    expect(await sweepDigests(test.postgres, 10)).toBe(1);
    expect((await digests()).map(({ from_id }) => from_id)).toEqual([
      first,
      last,
      ...left.map(({ from_id }) => from_id),
    ]);
    await drop([...partitions[0]!, ...partitions[2]!]);
    expect(await sweepDigests(test.postgres, 10)).toBe(2);
  });

  it('shows what a list is to be told by', async () => {
    const { notifications } = await reader.list({ key: 'key-403' }, undefined, 10);
    expect(notifications).toEqual([
      {
        id: all[403]!.id,
        channel: 'usual',
        publisher: 'often',
        key: 'key-403',
        notBefore: null,
        acceptedAt: expect.any(Date),
        mainObject: 'https://example.org/zaken/40',
        resource: null,
        resourceUrl: 'https://example.org/"quoted"/403',
        action: 'create',
        characteristics: { objectType: 'type-4', zone: 'hoofdObject' },
        deliveries: { delivered: 1 },
      },
    ]);
  });

  it.each<[string, number[]]>([
    ['punt_x_y', [11, 12]], // it is sent as puntXY
    ['puntX_y', [11]],
    ['puntXY', [12]],
    ['éénId', [13]],
    ['οδος', [14]],
  ])('finds the characteristic %s as it is sent, and as another spelling of its name is', async (name, rests) => {
    const ids = all.filter((_, n) => rests.includes(n % 800)).map(({ id }) => id);
    expect(await found('notification', { characteristics: [{ name, value: 'letters' }] }, 100)).toEqual(
      ids.toReversed(),
    );
  });

  it.each(['', 'COLLATE "C"', 'COLLATE "tr-TR-x-icu"'])(
    'compares names of characteristics in Postgres as it does where they are matched %s',
    async (collation) => {
      const wanted = names.map(canonicalName);
      const { upper, lower } = lettersOf(wanted);
      const rows = await test.sql<{ name: string; canonical: string }>(
        `SELECT name, ${canonicalNameInSql('name', '$2', '$3')} AS canonical
       FROM (SELECT given ${collation} AS name FROM unnest($1::text[]) AS n (given)) AS n`,
        [names, upper, lower],
      );
      expect(rows.map(({ canonical }) => canonical)).toEqual(wanted.map(withoutFinalSigma));
    },
  );

  it('knows the same error classes in Postgres as elsewhere', async () => {
    const given = classified.map(([, last_status, last_error, state = 'waiting']) => ({
      last_status,
      last_error,
      state,
    }));
    for (const errorClass of errorClasses) {
      const rows = await test.sql<{ nr: number }>(
        `SELECT nr::int FROM (SELECT row_number() OVER () - 1 AS nr, * FROM json_to_recordset($1)
           AS d (last_status int, last_error text, state delivery_state)) AS d WHERE ${errorClassCondition(errorClass)} ORDER BY nr`,
        [JSON.stringify(given)],
      );
      const wanted = classified.flatMap(([each], nr) => (each === errorClass ? [nr] : []));
      expect([errorClass, rows.map(({ nr }) => nr)]).toEqual([errorClass, wanted]);
    }
  });
});

describe('a list of notifications with several deliveries each', () => {
  it('has each of them, wherever a searched range ends within one', async () => {
    const { place, test, reader } = await openReader();
    for (let nr = 0; nr < 6; nr += 1) await test.accept(3);
    // Of each, the delivery that comes last in the order of a list.
    await test.sql(
      `UPDATE delivery SET last_status = 503
       WHERE (notification_id, subscription_id) IN (
         SELECT DISTINCT ON (notification_id) notification_id, subscription_id FROM delivery
         ORDER BY notification_id, subscription_id)`,
    );
    for (let rows = 1; rows <= 19; rows += 1) {
      let [found, after]: [number, string | undefined] = [0, undefined];
      do {
        const bounds = { rows, blocks: 1, digests: 1, owned: 1, bytes: 1_000_000 };
        const page: NotificationPage = await reader.list({ lastStatus: 503 }, after, 10, bounds);
        found += page.notifications.length;
        after = page.next;
      } while (after);
      expect([rows, found]).toEqual([rows, 6]);
    }
    await test.close();
    await place.drop();
  });
});

describe('a notification that waits', () => {
  it('is said to be scheduled where its publisher asked for that, not where it is dated a moment ahead', async () => {
    const { place, test, reader } = await openReader();
    const [{ notificationId: asked }, { notificationId: dated }] = [
      (await test.accept())[0]!,
      (await test.accept())[0]!,
    ];
    await test.sql(
      `UPDATE notification SET not_before = accepted_at + CASE id WHEN $1 THEN interval '1 hour' ELSE interval '500 ms' END`,
      [asked],
    );
    const page = await reader.list({}, undefined, 10);
    const listed = new Map(page.notifications.map(({ id, notBefore }) => [id, notBefore]));
    expect([listed.get(asked), listed.get(dated)]).toEqual([expect.any(Date), null]);
    const [first, second] = [await reader.find(asked, undefined, 10), await reader.find(dated, undefined, 10)];
    expect([first?.notBefore, second?.notBefore]).toEqual([expect.any(Date), null]);
    await test.close();
    await place.drop();
  });
});

describe('a search by what is in large bodies', () => {
  const length = 200_000;
  const count = 56;
  /** Six bodies a statement. */
  const bounds: SearchBounds = { rows: 10_000, blocks: 1, digests: 1, owned: 1, bytes: 1_100_000 };
  const mostTogether = 6;
  let place: TestDatabase;
  let test: TestLedger;
  let ids: string[];
  /** Of each statement that reads bodies, how many large ones are in its range. */
  let read: number[];
  let search: LedgerSearch;

  beforeAll(async () => {
    place = await createDatabase();
    test = await TestLedger.open({ DATABASE_URL: place.url });
    const firstMs = (await test.now()) - 3_600_000;
    ids = Array.from({ length: count }, (_, n) => modelOf(n, firstMs).id);
    // Postgres keeps such a text compressed: what counts is how long it is when it is read.
    await test.sql(
      `INSERT INTO notification (id, channel, publisher, body)
       SELECT id, 'usual', 'often', '{"hoofdObject":"https://example.org/' || (nr - 1) % 20 || '","text":"' || repeat('x', ${length}) || '"}'
       FROM unnest($1::uuid[]) WITH ORDINALITY AS n (id, nr)`,
      [ids],
    );
    await test.sql(
      `INSERT INTO delivery (notification_id, subscription_id, state) SELECT id, $2::uuid, 'failed' FROM unnest($1::uuid[]) AS n (id)`,
      [ids, even],
    );
    const queryAside = (statement: Statement, values: Values = {}) => {
      const { window_from: from, window_to: to, from_id, to_id } = values as Record<string, string[]>;
      const isIn = (id: string) =>
        from && to ? id >= from[0]! && id <= to[0]! : id >= `${from_id}` && id <= `${to_id}`;
      if (['search-windows', 'search-deliveries'].includes(statement.name)) read.push(ids.filter(isIn).length);
      return test.postgres.queryAside(statement, values);
    };
    search = new LedgerSearch({ queryAside } as unknown as TestLedger['postgres']);
  });

  beforeEach(() => (read = []));

  afterAll(async () => {
    await test.close();
    await place.drop();
  });

  async function findAll(sought: Sought, criteria: Criteria): Promise<{ found: string[]; calls: number }> {
    const found: string[] = [];
    let [calls, after]: [number, DeliveryKey | undefined] = [0, undefined];
    do {
      const page = await search.find(sought, criteria, after, 10, bounds);
      found.push(...page.keys.map(({ notificationId }) => notificationId));
      calls += 1;
      after = page.next;
    } while (after);
    return { found, calls };
  }

  const wanted = () => [ids[47], ids[27], ids[7]];
  const mainObject = 'https://example.org/7';

  it.each<[Sought, string, Criteria]>([
    ['notification', 'alone', {}],
    ['delivery', 'alone', {}],
    ['delivery', 'among dead letters', { state: 'failed' }],
    ['notification', 'among dead letters', { state: 'failed' }],
  ])('looks at a few bodies a statement: of each %s, %s', async (sought, _, others) => {
    expect(await findAll(sought, { mainObject, ...others })).toEqual({ found: wanted(), calls: 1 });
    expect(read).toEqual([...Array.from({ length: 9 }, () => mostTogether), count - 9 * mostTogether]);
  });

  it.each<Sought>(['notification', 'delivery'])(
    'stops after a few bodies among the dead letters of a subscription, and says so: of each %s',
    async (sought) => {
      const criteria: Criteria = { mainObject, state: 'failed', subscriptionId: even };
      const first = await search.find(sought, criteria, undefined, 10, bounds);
      expect(first).toMatchObject({ keys: [], searchedTo: new Date(timeOfId(ids[count - mostTogether]!)) });
      expect((await findAll(sought, criteria)).found).toEqual(wanted());
      // The last ones are less than one statement may read, from where the list goes on.
      expect(Math.max(...read)).toBeLessThanOrEqual(mostTogether + 1);
    },
  );

  it('reads all at once where their bodies do not tell', async () => {
    expect((await findAll('notification', { channel: 'none' })).found).toEqual([]);
    expect(read).toEqual([count]);
  });
});

describe('a notification for very many subscriptions', () => {
  it('is in a block of its own, which is always read, and keeps no other from having a digest', async () => {
    const place = await createDatabase();
    const test = await TestLedger.open({ DATABASE_URL: place.url });
    const nowMs = await test.now();
    const id = (n: number) => modelOf(n, nowMs - 3_600_000).id;
    const ids = Array.from({ length: 2 * mostNotifications }, (_, n) => id(n));
    await test.sql(
      `INSERT INTO notification (id, channel, publisher, body) SELECT id, 'cases', 'tester', '{}' FROM unnest($1::uuid[]) AS n (id)`,
      [ids],
    );
    await test.sql(
      `INSERT INTO delivery (notification_id, subscription_id, state)
       SELECT $1::uuid, gen_random_uuid(), 'delivered'::delivery_state FROM generate_series(1, 20001)
       UNION ALL SELECT $2::uuid, $3::uuid, 'delivered'`,
      [ids[700], ids[900], odd],
    );
    const search = new LedgerSearch(test.postgres);
    const keys = async (criteria: Criteria) =>
      (await search.find('notification', criteria, undefined, 10)).keys.map(({ notificationId }) => notificationId);
    const [many] = await test.sql<{ id: string }>(
      'SELECT subscription_id AS id FROM delivery WHERE notification_id = $1 LIMIT 1',
      [ids[700]],
    );

    await writeDigests(test.postgres, nowMs, new AbortController().signal, systemClock);
    const digests = await test.sql<{ from_id: string; to_id: string; is_read: boolean }>(
      'SELECT from_id, to_id, bits IS NULL AS is_read FROM digest ORDER BY from_id',
    );
    expect(digests.filter(({ is_read }) => is_read)).toEqual([{ from_id: ids[700], to_id: ids[700], is_read: true }]);
    expect(digests[0]!.from_id).toBe(ids[0]);
    const following = digests.slice(0, -1).map(({ to_id }) => ids[ids.indexOf(to_id) + 1]);
    expect(digests.slice(1).map(({ from_id }) => from_id)).toEqual(following);
    expect(await keys({ subscriptionId: many!.id })).toEqual([ids[700]]);
    expect(await keys({ subscriptionId: odd })).toEqual([ids[900]]);

    // A notification that is older than all digests, and came back with its day, is found as well.
    await test.sql('DELETE FROM digest WHERE from_id < $1', [ids[900]]);
    expect(await keys({ subscriptionId: many!.id })).toEqual([ids[700]]);
    await test.close();
    await place.drop();
  });
});

describe('a day that is detached while digests are written', () => {
  let place: Awaited<ReturnType<typeof createDatabase>>;
  let test: TestLedger;
  let noon: number;
  let days: number[];

  beforeEach(async () => {
    place = await createDatabase();
    test = await TestLedger.open({ DATABASE_URL: place.url });
    noon = Math.floor((await test.now()) / dayMs) * dayMs + dayMs / 2;
    days = [noon - 62 * dayMs, noon - 61 * dayMs, noon - 60 * dayMs];
    for (const partition of days.flatMap((ms) => partitionsBetween(ms, ms))) await test.sql(createPartition(partition));
  });
  afterEach(async () => {
    await test.close();
    await place.drop();
  });

  const addTo = (day: number, count = mostNotifications) =>
    test.sql(
      `INSERT INTO notification (id, channel, publisher, body) SELECT id, 'day-${day}', 'tester', '{}' FROM unnest($1::uuid[]) AS n (id)`,
      [Array.from({ length: count }, (_, n) => modelOf(n, days[day]!).id)],
    );
  const write = () => writeDigests(test.postgres, noon, new AbortController().signal, systemClock);

  it('keeps later ones from being written until it is back, and is found by its own', async () => {
    const firstIds = async () => {
      await write();
      const written = await test.sql<{ from_id: string }>('SELECT from_id FROM digest ORDER BY from_id');
      return written.map(({ from_id }) => from_id);
    };
    const firstOf = (day: number) => modelOf(0, days[day]!).id;
    await addTo(0);
    expect(await firstIds()).toEqual([firstOf(0)]);
    await addTo(1);
    await addTo(2);
    const [away] = partitionsBetween(days[1]!, days[1]!);
    await test.sql(`ALTER TABLE notification DETACH PARTITION ${away!.name}`);
    expect(await firstIds()).toEqual([firstOf(0)]);
    await test.sql(attachPartition(away!));
    expect(await firstIds()).toEqual([0, 1, 2].map(firstOf));
    const { keys } = await new LedgerSearch(test.postgres).find('notification', { channel: 'day-1' }, undefined, 1);
    expect(keys).toHaveLength(1);
  });

  it('is found by a digest that says nothing, where one of which it has a part was written anew meanwhile', async () => {
    await addTo(0, mostNotifications / 2);
    await addTo(1, mostNotifications / 2);
    await write();
    const [away] = partitionsBetween(days[0]!, days[0]!);
    await test.sql(`ALTER TABLE notification DETACH PARTITION ${away!.name}`);
    await test.postgres.transaction((query) => outdateDigests(query, [modelOf(0, days[1]!).id]));
    await write();
    const digests = await test.sql('SELECT is_stale, bits FROM digest');
    expect(digests).toEqual([{ is_stale: false, bits: null }]);
    await test.sql(attachPartition(away!));
    const { keys } = await new LedgerSearch(test.postgres).find('notification', { channel: 'day-0' }, undefined, 1);
    expect(keys).toHaveLength(1);
  });
});

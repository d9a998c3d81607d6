import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import type { Criteria } from '../../src/deliveries/criteria.js';
import type { Sought } from '../../src/deliveries/search-statements.js';
import { LedgerSearch, type SearchBounds } from '../../src/deliveries/search.service.js';
import { valuesOf, type Statement, type Values } from '../../src/infra/postgres/statement.js';
import type { DeliveryKey } from '../../src/ledger/delivery.js';
import { lowestIdAt } from '../../src/ledger/partitions.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { TestLedger } from '../support/ledger.js';
import { connectTo, pagesRead } from '../support/pages-read.js';

const soughts: readonly Sought[] = ['delivery', 'notification'];
const deliveriesOfEach = 100;
/** Of each statement: what a hundred deliveries take, and not thousands. */
const mostPages = 600;

let place: TestDatabase;
let test: TestLedger;
let client: pg.Client;
let search: LedgerSearch;
/** Of 60 notifications, from the oldest to the newest. */
let ids: string[];
/** Of the statements of a search: pages that each looked at, and blocks that it read. */
let pages: [name: string, pages: number][];
let windows: number[];

beforeAll(async () => {
  place = await createDatabase();
  test = await TestLedger.open({ DATABASE_URL: place.url });
  client = await connectTo(place);
  const firstMs = (await test.now()) - 3_600_000;
  ids = Array.from({ length: 60 }, (_, n) => lowestIdAt(firstMs + n).replace('0000-0000-0000', '7000-8000-0000'));
  await test.sql(
    `INSERT INTO notification (id, channel, publisher, body) SELECT id, 'usual', 'often', '{}' FROM unnest($1::uuid[]) AS n (id)`,
    [ids],
  );
  await test.sql(
    `INSERT INTO delivery (notification_id, subscription_id, state, last_status)
     SELECT id, gen_random_uuid(), 'delivered', 204 FROM unnest($1::uuid[]) AS n (id), generate_series(1, ${deliveriesOfEach})`,
    [ids],
  );
  await client.query('VACUUM ANALYZE');
  const queryAside = async (statement: Statement, values: Values = {}) => {
    pages.push([statement.name, await pagesRead(client, statement.text, valuesOf(statement, values))]);
    if (statement.name === 'search-windows') windows.push((values['window_from'] as string[]).length);
    return test.postgres.queryAside(statement, values);
  };
  search = new LedgerSearch({ queryAside } as unknown as TestLedger['postgres']);
});

beforeEach(() => ([pages, windows] = [[], []]));

afterAll(async () => {
  await client.end();
  await test.close();
  await place.drop();
});

const bounds: SearchBounds = { rows: 600, blocks: 20, digests: 100, owned: 1, bytes: 1_000_000 };

/** Blocks of so many notifications have a digest that says of nothing that it is not there. */
async function withDigests(ofEach: number, from: readonly string[], run: () => Promise<void>): Promise<void> {
  const first = from.filter((_, nr) => nr % ofEach === 0);
  const last = from.filter((_, nr) => nr % ofEach === ofEach - 1);
  await test.sql('INSERT INTO digest (from_id, to_id) SELECT * FROM unnest($1::uuid[], $2::uuid[])', [first, last]);
  try {
    await run();
  } finally {
    await test.sql('DELETE FROM digest');
  }
}

async function findAll(sought: Sought, criteria: Criteria, most: SearchBounds): Promise<string[][]> {
  const found: string[][] = [];
  let after: DeliveryKey | undefined;
  do {
    const page = await search.find(sought, criteria, after, 10, most);
    found.push(page.keys.map(({ notificationId }) => notificationId));
    after = page.next;
  } while (after);
  return found;
}

const expectFewPages = () => expect(pages.filter(([, read]) => read > mostPages)).toEqual([]);

describe('where notifications have many deliveries each', () => {
  it.each(soughts)(
    'a search of what has no digest ends by the deliveries that it looked at: of each %s',
    async (sought) => {
      const criteria = { channel: 'usual', lastStatus: 418 };
      const { keys, next, searchedTo } = await search.find(sought, criteria, undefined, 10, bounds);
      expect(keys).toEqual([]);
      expect(searchedTo).toBeDefined();
      // Each of its ten chunks ends with a whole notification.
      expect(ids.indexOf(next!.notificationId)).toBe(ids.length - 10);
      expectFewPages();
    },
  );

  it.each(soughts)('all of it is found all the same, each once: of each %s', async (sought) => {
    const some = [3, 17, 18, 59].map((nr) => ids[nr]!);
    await test.sql('UPDATE delivery SET last_status = 503 WHERE notification_id = ANY ($1::uuid[])', [some]);
    const ofEach = sought === 'delivery' ? deliveriesOfEach : 1;
    const wanted = some.toReversed().flatMap((id) => Array.from({ length: ofEach }, () => id));
    expect((await findAll(sought, { channel: 'usual', lastStatus: 503 }, bounds)).flat()).toEqual(wanted);
    await test.sql('UPDATE delivery SET last_status = 204');
  });

  it.each(soughts)('few blocks are read together: of each %s', (sought) =>
    withDigests(5, ids, async () => {
      expect(await findAll(sought, { channel: 'usual', lastStatus: 418 }, bounds)).toEqual([[]]);
      expect(Math.max(...windows)).toBe(2);
    }),
  );

  it('many blocks are read together where no delivery is looked at', () =>
    withDigests(5, ids, async () => {
      expect(await findAll('notification', { channel: 'none' }, bounds)).toEqual([[]]);
      expect(Math.max(...windows)).toBe(5);
    }));
});

describe('dead letters of a channel that all have', () => {
  /** The state is that of more than the few that are read at once. */
  const scarce: SearchBounds = { rows: 20, blocks: 2, digests: 100, owned: 1, bytes: 1_000_000 };
  const dead = [1, 2, 24];

  beforeAll(async () => {
    await test.sql(`UPDATE delivery SET state = 'failed' WHERE notification_id = ANY ($1::uuid[])`, [
      dead.map((nr) => ids[nr]),
    ]);
  });
  afterAll(async () => {
    await test.sql(`UPDATE delivery SET state = 'delivered' WHERE state = 'failed'`);
  });

  const wanted = dead.toReversed();
  const found = async () => {
    const page = await search.find('notification', { state: 'failed', channel: 'usual' }, undefined, 10, scarce);
    return { found: page.keys.map(({ notificationId }) => ids.indexOf(notificationId)), searchedTo: page.searchedTo };
  };

  it('are found at once behind any number of blocks that have none', () =>
    withDigests(5, ids.slice(0, 50), async () => {
      expect(await found()).toEqual({ found: wanted, searchedTo: undefined });
      expectFewPages();
    }));

  it('are found where nothing has a digest, each behind any number of others', async () => {
    const page = await found();
    expect(page.found).toEqual(wanted);
  });
});

describe('the deliveries of one notification', () => {
  let large: string;

  beforeAll(async () => {
    large = ids[30]!;
    // Random, as Postgres would keep another one in few pages.
    const body = { hoofdObject: 'https://example.org/1', text: randomBytes(100_000).toString('hex') };
    await test.sql('UPDATE notification SET body = $2 WHERE id = $1', [large, JSON.stringify(body)]);
  });
  afterAll(async () => {
    await test.sql(`UPDATE notification SET body = '{}' WHERE id = $1`, [large]);
  });

  it.each([
    ['wrong', 0],
    ['https://example.org/1', deliveriesOfEach],
  ])('are found by its body, %s, which is looked at once', async (mainObject, count) => {
    const criteria = { notificationId: large, mainObject };
    const { keys } = await search.find('delivery', criteria, undefined, 200, bounds);
    expect(keys).toHaveLength(count);
    expect((await search.find('notification', criteria, undefined, 200, bounds)).keys).toHaveLength(count > 0 ? 1 : 0);
    expectFewPages();
  });

  it('are none where it is not of the time that is asked for', async () => {
    const criteria = { notificationId: large, from: ids[31], mainObject: 'https://example.org/1' };
    expect(await search.find('delivery', criteria, undefined, 200, bounds)).toMatchObject({
      keys: [],
      next: undefined,
    });
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type pg from 'pg';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { createMonth, monthsBetween } from '../../src/audit/months.js';
import { mostBytes, page, rangeEnd, type EntryFilter } from '../../src/audit-entries/find-entries.js';
import { readSettings } from '../../src/config/settings.js';
import * as explained from '../../src/explaining/find-explained.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { valuesOf, type Statement, type Values } from '../../src/infra/postgres/statement.js';
import { lowestId } from '../../src/ledger/partitions.js';
import { actionsOn, subjectRows } from '../../src/notifications/find-actions.js';
import { toldActions } from '../../src/notifications/story.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { connectTo, pagesRead } from '../support/pages-read.js';

const dayMs = 86_400_000;
/** Over a year. */
const entries = 60_000;
/**
 * A page of twenty entries, and what leads there in each month that may have some. A walk through the log reads
 * thousands.
 */
const mostPages = 150;
const limit = 20;
const subscriptions = 10_000;

describe('with years in the audit log, each page costs what it lists:', () => {
  let database: TestDatabase;
  let client: pg.Client;
  const at = new Date(Date.now() - 200 * dayMs).toISOString();

  beforeAll(async () => {
    database = await createDatabase();
    const postgres = await Postgres.open(readSettings({ DATABASE_URL: database.url }), []);
    await postgres.migrate();
    await makeMonthsAhead(postgres);
    await postgres.close();
    client = await connectTo(database);
    for (const month of monthsBetween(Date.now() - 400 * dayMs, Date.now()))
      await client.query(`${createMonth(month)}`).catch(alreadyThere);
    // Half of it by one client, half of it one action, and each of a few subjects a hundred times.
    await client.query(
      `INSERT INTO audit_entry (at, client, action, subject, before, after, changed_secrets)
       SELECT now() - n * interval '8 minutes', CASE WHEN n % 2 = 0 THEN 'busy' ELSE 'client-' || n % 1000 END,
         CASE WHEN n % 2 = 1 THEN 'usual' ELSE 'action-' || n % 100 END,
         'thing/' || n / 100, '{"a": 1}', '{"a": 2}', '{}'
       FROM generate_series(1, ${entries}) AS n`,
    );
    await client.query(
      `INSERT INTO subscription (id, owner_client_id, callback_url, auth, channels, version)
       SELECT ('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'owner', 'https://receiver.example/', '',
         json_build_array(json_build_object('channel', 'cases', 'filters', json_build_object('kind', n::text))), 1
       FROM generate_series(1, ${subscriptions}) AS n`,
    );
    await client.query('ANALYZE audit_entry, subscription');
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  const pagesOf = ([statement, values]: [Statement, Values]): Promise<number> =>
    pagesRead(client, statement.text, valuesOf(statement, values));

  const middle = { at: at.replace('Z', '000Z'), nr: '1' };
  const filters: [string, EntryFilter][] = [
    ['all', {}],
    ['all, from the middle on', { after: middle }],
    ['of a busy client', { client: 'busy' }],
    ['of a client that has changed little', { client: 'client-7' }],
    ['of a client that there is not', { client: 'nobody' }],
    ['of a client, from the middle on', { client: 'busy', after: middle }],
    ['of a usual action', { action: 'usual' }],
    ['of an action that is rare', { action: 'action-42' }],
    ['of an action that there is not', { action: 'nothing' }],
    ['of a subject', { subject: 'thing/7' }],
    ['of a subject that there is not', { subject: 'thing/none' }],
    ['of a time', { from: at, to: new Date(Date.parse(at) + dayMs).toISOString() }],
    ['up to a time', { to: at }],
    ['of a client up to a time', { client: 'busy', to: at }],
    ['of an action from a time on', { action: 'nothing', from: at }],
  ];

  it.each(filters)('%s', async (_, filter) => {
    expect(await pagesOf(page(filter, limit))).toBeLessThan(mostPages);
  });

  it('large entries, which are not read to learn how many fit in it', async () => {
    const subject = 'large/1';
    await client.query(
      `INSERT INTO audit_entry (at, action, subject, before, bytes, changed_secrets)
       SELECT now() - n * interval '1 minute', 'large', $1, before, octet_length(before::text), '{}'
       FROM generate_series(1, 50) AS n
         CROSS JOIN (SELECT to_json(string_agg(md5(i::text), '')) AS before FROM generate_series(1, 6500) AS i) AS large`,
      [subject],
    );
    const [statement, values] = page({ subject }, 100);
    const { rows } = await client.query(statement.text, valuesOf(statement, values));
    expect(rows).toHaveLength(Math.floor(mostBytes / (6500 * 32 + 2)));
    expect(await pagesOf([statement, values])).toBeLessThan(mostPages);
  });

  it.each<[string, EntryFilter]>([
    ['a busy client has never done the usual action', { client: 'busy', action: 'usual' }],
    ['a client and a subject', { client: 'busy', subject: 'thing/7' }],
    ['a client, a subject and an action', { client: 'busy', subject: 'thing/7', action: 'usual' }],
  ])('two filters search a limited range: %s', async (_, filter) => {
    const range = rangeEnd(filter, 500);
    expect(await pagesOf(range)).toBeLessThan(mostPages);
    const { rows } = await client.query<{ at: string; nr: string }>(
      range[0].text.replace('(extract(epoch FROM at) * 1000000)::bigint AS at_us', 'at::text'),
      valuesOf(...range),
    );
    // A hundred entries are all of a subject.
    expect(rows).toHaveLength(filter.subject ? 0 : 1);
    const most = mostPages + 2 * 500;
    expect(await pagesOf(page(filter, limit, rows[0]))).toBeLessThan(most);
  });

  describe('why subscriptions got a notification, or did not,', () => {
    const since = new Date(Date.now() - 3 * dayMs);
    const [id, first] = ['019a9f3e-8c00-7000-8000-0123456789ab', '00000000-0000-4000-8000-000000000001'];
    const range = { id, after: lowestId, since, limit };
    const [last, rows] = ['00000000-0000-4000-8000-0000000007d0', 2000];

    it.each<[string, number, Statement, Values]>([
      ['the first entry', 20, explained.firstEntry, {}],
      ['one subscription', 20, explained.subscriptions, { ids: [first], since }],
      // Each of them is looked for in the months since.
      ['the end of a range', rows * 10, explained.lastInRange, { after: lowestId, rows, since }],
      ['a page of those about its channel', limit * 10 + 20, explained.others, { ...range, channel: 'cases', last }],
      ['a range in which there is none', rows * 10, explained.others, { ...range, channel: 'none', last }],
    ])('costs what it lists: %s', async (_, most, statement, values) => {
      expect(await pagesOf([statement, values])).toBeLessThan(most);
    });

    describe('where subscriptions and their changes are large,', () => {
      const some = 12;
      const ids = Array.from({ length: some }, (_, nr) => `10000000-0000-4000-8000-${String(nr).padStart(12, '0')}`);
      const large = 512 * 1024;
      /** The channels of one, and its changes. */
      const mostRead = large + explained.mostBytes;
      const pageBytes = 8192; // of Postgres
      const before = '00000000-0000-4000-8000-000000002710';

      beforeAll(async () => {
        // Each was deleted, brought back, and changed until what was changed is as long as two pages may read.
        await client.query(
          `WITH large AS (SELECT string_agg(md5(i::text), '') AS text FROM generate_series(1, ${large / 32}) AS i),
             channels AS (SELECT json_build_array(json_build_object('channel', 'large', 'filters',
               json_build_object('kind', text))) AS channels FROM large),
             made AS (
               INSERT INTO subscription (id, owner_client_id, callback_url, auth, channels, version)
               SELECT id, 'owner', 'https://receiver.example/', '', channels, 1
               FROM unnest($1::uuid[]) AS id, channels
             )
           INSERT INTO audit_entry (at, action, subject, before, bytes, changed_secrets)
           SELECT now() - n * interval '1 minute',
             CASE WHEN n = 16 THEN 'subscription.deleted' ELSE 'subscription.changed' END, 'subscription/' || id, before,
             octet_length(before::text), '{}'
           FROM unnest($1::uuid[]) AS id, generate_series(1, 16) AS n,
             (SELECT json_build_object('channels', channels) AS before FROM channels) AS large`,
          [ids],
        );
      });

      it.each<[string, number, Statement, Values]>([
        // To find its end, the channels of the first one and of the one that is too many.
        ['its end', 2 * large, explained.lastOfThese, { ids, rows: some, since }],
        ['the end of its range', 2 * large, explained.lastInRange, { after: before, rows, since }],
        ['its search', mostRead, explained.others, { ...range, channel: 'none', after: before, last: ids[0] }],
        ['all that it tells', mostRead, explained.subscriptions, { ids: [ids[0]], since }],
      ])('a page reads no more than it tells: %s', async (_, bytes, statement, values) => {
        expect(await pagesOf([statement, values])).toBeLessThan(bytes / pageBytes + mostPages);
      });

      it('the story of a notification reads nothing of their changes', async () => {
        const subjects = ids.map((each) => ({ name: `subscription/${each}`, until: null }));
        const limits = { most_of_each: 1000, most: 10_000 };
        const values = { ...subjectRows.bind(subjects), told: toldActions, since, ...limits };
        expect(await pagesOf([actionsOn, values])).toBeLessThan(2 * mostPages);
      });

      it('a page is one of them', async () => {
        const { rows: found } = await client.query<{ id: string }>(
          explained.lastOfThese.text,
          valuesOf(explained.lastOfThese, { ids, rows: some, since }),
        );
        expect(found).toEqual([{ id: ids[0] }]);
      });
    });
  });

  it.each([
    ['audit_entry_client', { client: 'nobody' }],
    ['audit_entry_action', { action: 'nothing' }],
    ['audit_entry_subject', { subject: 'thing/none' }],
  ])('without the index %s a page looks at many more', async (index, filter) => {
    await client.query('BEGIN');
    await client.query(`DROP INDEX ${index}`);
    expect(await pagesOf(page(filter, limit))).toBeGreaterThan(4 * mostPages);
    await client.query('ROLLBACK');
  });
});

function alreadyThere(error: { code?: string }): void {
  if (error.code !== '42P07') throw error as Error;
}

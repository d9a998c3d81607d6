import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { readSettings } from '../../src/config/settings.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { valuesOf, type Statement, type Values } from '../../src/infra/postgres/statement.js';
import { changedSubscriptionsPage } from '../../src/subscriptions/changed-subscriptions.js';
import { ChannelSubscribers } from '../../src/subscriptions/channel-subscribers.js';
import { SubscriptionDirectory } from '../../src/subscriptions/subscription-directory.service.js';
import { embedded, type PreparedStack } from '../support/stacks.js';
import { plainCipher } from '../support/secrets.js';

const caseOf = (type: string) => new Map([['type', type]]);

describe('the subscriptions in memory', () => {
  let prepared: PreparedStack;
  let postgres: Postgres;
  /** The rows that each page of subscriptions had. */
  const pages: number[] = [];
  /** Called after each page. */
  let happen: () => Promise<unknown>;
  let catalogue: Catalogue;
  let directory: SubscriptionDirectory;

  beforeAll(async () => {
    prepared = await embedded.prepare();
    postgres = await Postgres.open(readSettings(prepared.settings), []);
    await postgres.migrate();
  });
  beforeEach(async () => {
    await sql('TRUNCATE subscription CASCADE');
    happen = () => Promise.resolve();
    startAnew();
    pages.length = 0;
  });
  afterAll(async () => {
    await postgres.close();
    await prepared.release();
  });

  const sql = <R>(text: string, values: unknown[] = []): Promise<R[]> => postgres.dataSource.query(text, values);

  /** As a process that starts: nothing is in its memory. */
  function startAnew(): void {
    const watched = Object.create(postgres, {
      query: {
        value: async (statement: Statement, values: Values) => {
          const rows = await postgres.query(statement, values);
          if (statement === changedSubscriptionsPage) {
            pages.push(rows.length);
            await happen();
          }
          return rows;
        },
      },
    }) as Postgres;
    catalogue = new Catalogue(watched);
    directory = new SubscriptionDirectory(catalogue, watched, plainCipher);
  }

  /**
   * Subscriptions to cases of the types that SQL gives each number, all made by one change. In the order of their
   * creation.
   */
  async function subscribe(count: number, type = "'t' || nr"): Promise<string[]> {
    const ids = Array.from({ length: count }, () => randomUUID());
    await catalogue.change((manager, version) =>
      manager.query(
        `INSERT INTO subscription (id, owner_client_id, callback_url, auth, channels, version, created_at)
         SELECT id, 'owner', 'http://receiver.example/', '',
           json_build_array(json_build_object('channel', 'cases', 'filters', json_build_object('type', ${type}))), $2,
           now() + nr * interval '1 microsecond'
         FROM unnest($1::uuid[]) WITH ORDINALITY AS item (id, nr)`,
        [ids, version],
      ),
    );
    return ids;
  }

  const change = (id: string | undefined, assignment: string) =>
    catalogue.change((manager, version) =>
      manager.query(`UPDATE subscription SET version = $2, ${assignment} WHERE id = $1`, [id, version]),
    );

  it('are all of them, in the order of their creation, however many pages there are to read', async () => {
    const ids = await subscribe(1234);
    startAnew();
    pages.length = 0;
    await catalogue.refresh();
    expect(directory.list().map(({ id }) => id)).toEqual(ids);
    expect(directory.match('cases', caseOf('t1234'))).toEqual([ids[1233]]);
    expect(pages).toEqual([500, 500, 234]);
  });

  it('are read again one by one as they change, and keep their place in the order', async () => {
    const ids = await subscribe(600);
    pages.length = 0;
    await change(ids[7], "callback_url = 'http://other.example/'");
    expect(pages).toEqual([1]);
    expect(directory.find(ids[7]!)).toMatchObject({ callbackUrl: 'http://other.example/' });
    expect(directory.list().map(({ id }) => id)).toEqual(ids);
  });

  it('miss none that changes while the pages are read', async () => {
    const inOrderOfPages = (await subscribe(600)).toSorted();
    startAnew();
    happen = async () => {
      happen = () => Promise.resolve();
      // As another process would: one that was read, and one that was not and now comes after all others.
      await sql('UPDATE catalogue SET version = version + 1');
      await sql(
        `UPDATE subscription SET version = (SELECT version FROM catalogue), auth = 'new' WHERE id = ANY ($1::uuid[])`,
        [[inOrderOfPages[0], inOrderOfPages[599]]],
      );
    };
    await catalogue.refresh();
    expect(directory.list()).toHaveLength(600);
    await catalogue.refresh();
    expect(directory.list().filter(({ auth }) => auth === 'new')).toHaveLength(2);
    expect(directory.match('cases', new Map())).toHaveLength(600);
  });

  it('are known with the version at which their rate was set or lowered, and with none that changed anything else', async () => {
    const [id] = await subscribe(1);
    const known = async (assignment: string) => {
      await change(id, assignment);
      const { slowedWith, version } = directory.find(id!)!;
      return version - slowedWith!;
    };
    const first = directory.find(id!)!;
    expect(first.slowedWith).toBe(first.version);
    expect(await known(`auth = 'new'`)).toBe(1);
    expect(await known('rate_per_second = 5')).toBe(0);
    expect(await known('max_concurrency = 1')).toBe(1);
    expect(await known('rate_per_second = 4')).toBe(0);
    expect(await known('rate_per_second = 5')).toBe(1);
    expect(await known('rate_per_second = NULL')).toBe(2);
    expect(await known('rate_per_second = 3')).toBe(0);
    // A failover that has lost the last change: a later version than there is would hold all that is released.
    await sql('UPDATE catalogue SET version = version - 1');
    await sql('UPDATE subscription SET version = version - 1, rate_per_second = 5 WHERE id = $1', [id]);
    await catalogue.refresh();
    expect(directory.find(id!)).toMatchObject({ ratePerSecond: 5, slowedWith: directory.find(id!)!.version });
    startAnew();
    await catalogue.refresh();
    expect(directory.find(id!)!.slowedWith).toBe(directory.find(id!)!.version);
  });

  it('are known to be restrained while one of them is paused or has a rate', async () => {
    expect(directory.isAnyRestrained).toBe(false);
    const [one, two] = await subscribe(2, "'same'");
    expect(directory.isAnyRestrained).toBe(false);
    await change(one, 'paused_at = now()');
    await change(two, 'rate_per_second = 5');
    await change(one, 'paused_at = NULL');
    expect(directory.isAnyRestrained).toBe(true);
    await change(two, 'rate_per_second = NULL');
    expect(directory.isAnyRestrained).toBe(false);
  });

  it('are matched while they are enabled, and by the filters they have last', async () => {
    const [one, two] = await subscribe(2, "'same'");
    await change(one, 'disabled_at = now()');
    expect(directory.match('cases', caseOf('same'))).toEqual([two]);
    expect(directory.find(one!)?.disabledAt).toBeInstanceOf(Date);
    await change(one, `disabled_at = NULL, channels = '[{"channel": "cases", "filters": {"type": "new"}}]'`);
    expect(directory.match('cases', caseOf('same'))).toEqual([two]);
    expect(directory.match('cases', caseOf('new'))).toEqual([one]);
    await change(two, `channels = '[{"channel": "other", "filters": {}}]'`);
    expect(directory.match('cases', caseOf('same'))).toEqual([]);
    expect(directory.match('other', caseOf('same'))).toEqual([two]);
  });

  it('get their next filters in one step, with room before it for what else the process does', async () => {
    const [id] = await subscribe(1);
    const entries = Array.from({ length: 500 }, (_, nr) => ({
      channel: 'cases',
      filters: {
        type: 'new',
        ...Object.fromEntries(Array.from({ length: 99 }, (__, each) => [`aName${nr}Of${each}`, 'x'])),
      },
    }));
    const seen: string[] = [];
    let isRead = false;
    const look = () => {
      if (isRead) return;
      const found = ['t1', 'new', 'other'].filter((type) => directory.match('cases', caseOf(type)).length > 0);
      seen.push(`${found.join()} of ${directory.find(id!)?.channels.length}`);
      setImmediate(look);
    };
    happen = () => {
      setImmediate(look);
      return Promise.resolve();
    };
    await change(id, `channels = '${JSON.stringify(entries)}'`);
    isRead = true;
    expect(seen[0]).toBe('t1 of 1');
    expect(['t1 of 1', 'new of 500']).toEqual(expect.arrayContaining([...new Set(seen)]));
    expect(directory.match('cases', caseOf('t1'))).toEqual([]);
    expect(directory.match('cases', caseOf('new'))).toEqual([id]);
  });

  it('are prepared for matching again only as far as their filters are others', async () => {
    const added = vi.spyOn(ChannelSubscribers.prototype, 'add');
    onTestFinished(() => added.mockRestore());
    const [id] = await subscribe(1);
    const entry = (type: string) => ({ channel: 'cases', filters: { type } });
    await change(id, `channels = '${JSON.stringify([entry('one'), entry('two')])}'`);
    expect(added.mock.calls.map(([, alternatives]) => alternatives.length)).toEqual([1, 2]);
    await change(id, "callback_url = 'http://other.example/'");
    await change(id, `channels = '${JSON.stringify([entry('one'), entry('two')])}'`);
    expect(added).toHaveBeenCalledTimes(2);
    await change(id, `channels = '${JSON.stringify([entry('one'), entry('three')])}'`);
    const [before, after] = added.mock.calls.slice(1).map(([, alternatives]) => alternatives);
    expect(after![0]).toBe(before![0]);
    expect(directory.match('cases', caseOf('two'))).toEqual([]);
    expect(directory.match('cases', caseOf('three'))).toEqual([id]);
    expect(directory.match('cases', caseOf('one'))).toEqual([id]);
  });

  it('count in the share of their owner as they are now, through every change', async () => {
    const [id] = await subscribe(1);
    const share = (of: string) => {
      const sets = directory.shares.nameSetsOf(of).of('cases');
      return { ...directory.shares.of(of), sets: [...sets] };
    };
    const before = share('owner');
    expect(before).toMatchObject({ subscriptions: 1, sets: [['["type"]', 1]] });
    await change(id, "callback_url = callback_url || 'longer'");
    expect(share('owner')).toEqual({ ...before, bytes: before.bytes + 6 });
    await change(id, "owner_client_id = 'another', disabled_at = now()");
    expect(share('owner')).toEqual({ subscriptions: 0, bytes: 0, sets: [] });
    expect(share('another')).toEqual({ ...before, bytes: before.bytes + 6 });
    await change(id, 'deleted_at = now()');
    expect(share('another')).toEqual({ subscriptions: 0, bytes: 0, sets: [] });
  });

  it('lack those that were deleted, which a process that starts does not even read', async () => {
    const [one, two] = await subscribe(2, "'same'");
    await change(one, 'deleted_at = now()');
    expect(directory.find(one!)).toBeUndefined();
    expect(directory.match('cases', caseOf('same'))).toEqual([two]);
    startAnew();
    pages.length = 0;
    await catalogue.refresh();
    expect(directory.list().map(({ id }) => id)).toEqual([two]);
    expect(pages).toEqual([1]);
  });

  it('are read in the order of an index, page by page, rather than sorted', async () => {
    await subscribe(2000);
    const values = { after_version: '0', after_id: randomUUID(), known: 0, limit: 500 };
    await postgres.dataSource.query('SET plan_cache_mode = force_generic_plan');
    await sql(`PREPARE page AS ${changedSubscriptionsPage.text}`);
    const literals = valuesOf(changedSubscriptionsPage, values).map((value) => `'${String(value)}'`);
    const plan = await sql<{ 'QUERY PLAN': string }>(`EXPLAIN (COSTS off) EXECUTE page (${literals.join()})`);
    await sql('DEALLOCATE page');
    await sql('RESET plan_cache_mode');
    const lines = plan.map((line) => line['QUERY PLAN'].trim());
    expect(lines[1]).toBe('->  Index Scan using subscription_version on subscription');
    expect(lines[2]).toBe('Index Cond: (ROW(version, id) > ROW($1, $2))');
    expect(lines.join()).not.toMatch(/Sort/);
  });
});

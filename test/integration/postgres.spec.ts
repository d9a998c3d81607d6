import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { readSettings } from '../../src/config/settings.js';
import { toProblem } from '../../src/infra/http/to-problem.js';
import { isCommitInDoubt } from '../../src/infra/postgres/commit-in-doubt.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { isDataError, isUnavailable } from '../../src/infra/postgres/postgres-errors.js';
import { rowsOf, statement, valuesOf, type Statement, type Values } from '../../src/infra/postgres/statement.js';
import { queryOnce } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { stacks, type PreparedStack } from '../support/stacks.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const echo = statement('echo', 'SELECT $text::text AS text');
const refused: [string, Statement, Values][] = [
  ['a text with a NUL character', echo, { text: 'a\0b' }],
  ['a text that is no uuid', statement('uuid', 'SELECT $id::uuid'), { id: 'nonsense' }],
  [
    'a key that is there already',
    statement('insert', 'INSERT INTO catalogue (version) VALUES ($version)'),
    { version: 1 },
  ],
  ['a division by zero', statement('divide', 'SELECT 1 / $divisor::int'), { divisor: 0 }],
];

describe.each(stacks)('the database of the $name stack', (stack) => {
  let prepared: PreparedStack;
  let postgres: Postgres;

  beforeAll(async () => {
    prepared = await stack.prepare();
    postgres = await Postgres.open(readSettings({ ...prepared.settings, DATABASE_POOL_SIZE: '2' }), []);
    await postgres.migrate();
  });
  afterAll(async () => {
    await postgres.close();
    await prepared.release();
  });

  it.each(refused)('goes on after it refused %s', async (_what, refusedOne, values) => {
    const failure = await postgres.query(refusedOne, values).catch((error: unknown) => error);
    expect(isDataError(failure)).toBe(true);
    expect(await postgres.query(echo, { text: 'after' })).toEqual([{ text: 'after' }]);
  });

  it('gives every caller its own answer, also when it refuses some statements', async () => {
    const answers = await Promise.allSettled(
      Array.from({ length: 40 }, (_, nr) => {
        const [, refusedOne, values] = refused[(nr >> 1) % refused.length]!;
        return nr % 2 === 0 ? postgres.query(echo, { text: String(nr) }) : postgres.query(refusedOne, values);
      }),
    );
    const found = answers.map((answer) =>
      answer.status === 'fulfilled' ? answer.value : isDataError(answer.reason) && 'refused',
    );
    expect(found).toEqual(answers.map((_, nr) => (nr % 2 === 0 ? [{ text: String(nr) }] : 'refused')));
  });

  it('keeps its connections when it refuses statements', async () => {
    const pid = statement('pid', 'SELECT pg_backend_pid() AS pid');
    const backends = async () => {
      const rows = await Promise.all([1, 2, 3].map(() => postgres.query<{ pid: number }>(pid)));
      return new Set(rows.map(([row]) => row!.pid));
    };
    const before = await backends();
    await Promise.allSettled(refused.map(([, refusedOne, values]) => postgres.query(refusedOne, values)));
    const after = await backends();
    expect([...after].filter((pid) => !before.has(pid))).toEqual([]);
  });

  it('undoes a transaction in which a statement was refused, and goes on', async () => {
    const raise = statement('raise', 'UPDATE catalogue SET version = version + 1 RETURNING version');
    const read = statement('read', 'SELECT version FROM catalogue');
    const before = await postgres.query(read);
    for (const [, refusedOne, values] of refused) {
      const work = postgres.transaction(async (query) => {
        await query(raise);
        await query(refusedOne, values);
      });
      await expect(work).rejects.toMatchObject({ code: expect.stringMatching(/^2[23]/) as unknown });
      const typeorm = postgres.dataSource.transaction(async (manager) => {
        await manager.query(raise.text);
        await manager.query(refusedOne.text, valuesOf(refusedOne, values));
      });
      expect(isDataError(await typeorm.catch((error: unknown) => error))).toBe(true);
    }
    expect(await postgres.query(read)).toEqual(before);
  });

  it('says how many rows a statement changed', async () => {
    await postgres.query(
      statement(
        'add',
        `INSERT INTO process (id, roles, expires_at)
      SELECT 'counted-' || nr, '{}', now() FROM generate_series(1, 3) AS nr`,
      ),
    );
    const remove = statement('remove', `DELETE FROM process WHERE id LIKE $pattern AND id <> $spared`);
    const values = { pattern: 'counted-%', spared: 'counted-2' };
    expect(await postgres.affected(remove, values)).toBe(2);
    expect(await postgres.affected(remove, values)).toBe(0);
    expect(await postgres.affected(remove, { ...values, spared: '' })).toBe(1);
  });

  it('gets rows as one array a column, and returns them as rows', async () => {
    const rows = rowsOf<{ name: string; size: number | null }>('given', {
      size: ['int', (item) => item.size],
      name: ['text', (item) => item.name],
    });
    const items = [
      { name: 'one', size: 1 },
      { name: 'none', size: null },
      { name: 'two', size: 2 },
    ];
    const read = statement(
      'rows',
      `SELECT name, size, (${rows.array('name')})[2] AS second FROM ${rows.from} WHERE name <> $other`,
    );
    expect(await postgres.query(read, { other: 'two', ...rows.bind(items) })).toEqual([
      { name: 'one', size: 1, second: 'none' },
      { name: 'none', size: null, second: 'none' },
    ]);
    expect(await postgres.query(read, { other: 'two', ...rows.bind([]) })).toEqual([]);
  });

  it('prepares again what it gave back, which on the embedded database is all', async () => {
    const names = async () =>
      (await postgres.dataSource.query<{ name: string }[]>('SELECT name FROM pg_prepared_statements')).map(
        ({ name }) => name,
      );
    await postgres.query(echo, { text: 'before' });
    await postgres.forgetStatements();
    const afterwards = await names();
    for (const text of ['one', 'other']) expect(await postgres.query(echo, { text })).toEqual([{ text }]);
    // On a server these are the statements of another connection, which has none.
    expect([afterwards, await names()]).toEqual([[], stack.name === 'embedded' ? ['echo'] : []]);
  });

  it('does not run a statement while a parameter is missing', async () => {
    await expect(postgres.query(echo, { txet: 'misspelt' })).rejects.toThrow(
      'statement echo: nothing was given for $text',
    );
  });

  it('compiles no plan, on any of its connections', async () => {
    const { dataSource, upkeep } = postgres;
    for (const source of [dataSource, upkeep]) expect(await source.query('SHOW jit')).toEqual([{ jit: 'off' }]);
    expect(await postgres.query(statement('jit', 'SHOW jit'))).toEqual([{ jit: 'off' }]);
  });

  it('knows its migrations, and that none is left to run', async () => {
    expect(await postgres.hasPendingMigrations()).toBe(false);
    expect(await postgres.migrate()).toEqual([]);
  });
});

describe('the hot path of a real server', () => {
  it('has each statement planned once, for any values', async () => {
    const postgres = await Postgres.open(readSettings({ DATABASE_URL: process.env['TEST_DATABASE_URL'] }), []);
    const planned = await postgres.transaction(async (query) => {
      for (let nr = 0; nr < 8; nr++) await query(echo, { text: String(nr) });
      const plans = `SELECT generic_plans::int AS once, custom_plans::int AS anew FROM pg_prepared_statements WHERE name LIKE 'echo%'`;
      return query(statement('plans', plans));
    });
    await postgres.close();
    expect(planned).toEqual([{ once: 8, anew: 0 }]);
  });
});

describe('the connections of the hot path', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('stay open after a burst, so that the next one waits for none', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const postgres = await Postgres.open(readSettings({ DATABASE_URL: process.env['TEST_DATABASE_URL'] }), []);
    try {
      const pid = statement('pid', 'SELECT pg_backend_pid() AS pid, pg_sleep(0.05)');
      const burst = async () => {
        const rows = await Promise.all(Array.from({ length: 5 }, () => postgres.query<{ pid: number }>(pid)));
        return rows.map(([row]) => row!.pid).toSorted((a, b) => a - b);
      };
      const before = await burst();
      expect(new Set(before).size).toBe(5);
      vi.advanceTimersByTime(15 * 60_000);
      expect(await burst()).toEqual(before);
    } finally {
      await postgres.close();
    }
  });
});

describe('a transaction whose connection breaks', () => {
  it.each([
    ['before its COMMIT was sent', false],
    ['before its COMMIT was answered', true],
  ])('%s: may it have been done? %s', async (_, isInDoubt) => {
    const prepared = await stacks.find(({ name }) => name === 'real')!.prepare();
    const proxy = await TcpProxy.start(prepared.settings['DATABASE_URL']!);
    const postgres = await Postgres.open(readSettings({ ...prepared.settings, DATABASE_URL: proxy.url }), []);
    await postgres.migrate();
    const cut = (bytes: Buffer) => {
      if (bytes.includes(isInDoubt ? 'COMMIT' : 'UPDATE')) void proxy.cut();
    };
    const raise = statement('raise', 'UPDATE catalogue SET version = version + 1');
    proxy.onClientData = cut;
    const failures = [
      await postgres.transaction((query) => query(raise)).catch((error: unknown) => error),
      await proxy
        .restore()
        .then(() => postgres.entityTransaction((manager) => manager.query(raise.text)))
        .catch((error: unknown) => error),
    ];
    expect(failures.map(isCommitInDoubt)).toEqual([isInDoubt, isInDoubt]);
    expect(failures.map((failure) => toProblem(failure).message)).toEqual(
      Array(2).fill(expect.stringContaining(isInDoubt ? 'may have been done' : 'out of reach')),
    );
    proxy.onClientData = undefined;
    await postgres.close();
    await proxy.cut();
    await prepared.release();
  });
});

describe('a Postgres that stops and comes back', () => {
  it('refuses while it is gone, and works again afterwards', async () => {
    const prepared = await stacks.find(({ name }) => name === 'real')!.prepare();
    const proxy = await TcpProxy.start(prepared.settings.DATABASE_URL!);
    const postgres = await Postgres.open(readSettings({ ...prepared.settings, DATABASE_URL: proxy.url }), []);
    expect(await postgres.query(echo, { text: 'before' })).toEqual([{ text: 'before' }]);
    const slow = statement('slow', 'SELECT pg_sleep(30)');
    const cutOff = [postgres.query(slow), postgres.transaction((query) => query(slow))];
    const failures = Promise.all(cutOff.map((work) => work.catch((error: unknown) => error)));
    await eventually(async () => (await activeSleeps(prepared)) === 2, 'both to be under way');
    await proxy.cut();
    for (const failure of await failures) expect(isUnavailable(failure)).toBe(true);
    const failure = await postgres.query(echo, { text: 'gone' }).catch((error: unknown) => error);
    expect(isUnavailable(failure)).toBe(true);
    await proxy.restore();
    await eventually(() => postgres.query(echo, { text: 'back' }).catch(() => undefined));
    await postgres.close();
    await proxy.cut();
    await prepared.release();
  });
});

async function activeSleeps({ settings }: PreparedStack): Promise<number> {
  const text = `SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(30)' AND datname = current_database()`;
  return (await queryOnce(settings.DATABASE_URL, text)).length;
}

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { readSettings } from '../../src/config/settings.js';
import { Postgres, type Statement } from '../../src/infra/postgres/postgres.js';
import { isDataError, isUnavailable } from '../../src/infra/postgres/postgres-errors.js';
import { eventually } from '../support/eventually.js';
import { stacks, type PreparedStack } from '../support/stacks.js';
import { TcpProxy } from '../support/tcp-proxy.js';

const echo: Statement = { name: 'echo', text: 'SELECT $1::text AS text' };
const refused: [string, Statement, unknown[]][] = [
  ['a text with a NUL character', echo, ['a\0b']],
  ['what is no uuid', { name: 'uuid', text: 'SELECT $1::uuid' }, ['nonsense']],
  ['a key that is there already', { name: 'insert', text: 'INSERT INTO catalogue (version) VALUES ($1)' }, [1]],
  ['a division by zero', { name: 'divide', text: 'SELECT 1 / $1::int' }, [0]],
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

  it.each(refused)('goes on after it refused %s', async (_what, statement, values) => {
    const failure = await postgres.query(statement, values).catch((error: unknown) => error);
    expect(isDataError(failure)).toBe(true);
    expect(await postgres.query(echo, ['after'])).toEqual([{ text: 'after' }]);
  });

  it('gives everyone their own answer, whatever it refuses in between', async () => {
    const answers = await Promise.allSettled(
      Array.from({ length: 40 }, (_, nr) => {
        const [, statement, values] = refused[(nr >> 1) % refused.length]!;
        return nr % 2 === 0 ? postgres.query(echo, [String(nr)]) : postgres.query(statement, values);
      }),
    );
    const found = answers.map((answer) =>
      answer.status === 'fulfilled' ? answer.value : isDataError(answer.reason) && 'refused',
    );
    expect(found).toEqual(answers.map((_, nr) => (nr % 2 === 0 ? [{ text: String(nr) }] : 'refused')));
  });

  it('keeps its connections, whatever it refuses', async () => {
    const backends = async () => {
      const rows = await Promise.all(
        [1, 2, 3].map(() =>
          postgres.query<{ pid: number }>({ name: 'pid', text: 'SELECT pg_backend_pid() AS pid' }, []),
        ),
      );
      return new Set(rows.map(([row]) => row!.pid));
    };
    const before = await backends();
    await Promise.allSettled(refused.map(([, statement, values]) => postgres.query(statement, values)));
    const after = await backends();
    expect([...after].filter((pid) => !before.has(pid))).toEqual([]);
  });

  it('undoes a transaction in which something was refused, and goes on', async () => {
    const raise: Statement = { name: 'raise', text: 'UPDATE catalogue SET version = version + 1 RETURNING version' };
    const read: Statement = { name: 'read', text: 'SELECT version FROM catalogue' };
    const before = await postgres.query(read, []);
    for (const [, statement, values] of refused) {
      const work = postgres.transaction(async (query) => {
        await query(raise, []);
        await query(statement, values);
      });
      await expect(work).rejects.toMatchObject({ code: expect.stringMatching(/^2[23]/) as unknown });
      const typeorm = postgres.dataSource.transaction(async (manager) => {
        await manager.query(raise.text);
        await manager.query(statement.text, values);
      });
      expect(isDataError(await typeorm.catch((error: unknown) => error))).toBe(true);
    }
    expect(await postgres.query(read, [])).toEqual(before);
  });

  it('knows its migrations, and that none is left to run', async () => {
    expect(await postgres.hasPendingMigrations()).toBe(false);
    expect(await postgres.migrate()).toEqual([]);
  });
});

describe('a Postgres that goes and comes back', () => {
  it('refuses while it is gone, and works again afterwards', async () => {
    const prepared = await stacks.find(({ name }) => name === 'real')!.prepare();
    const proxy = await TcpProxy.start(prepared.settings.DATABASE_URL!);
    const postgres = await Postgres.open(readSettings({ ...prepared.settings, DATABASE_URL: proxy.url }), []);
    expect(await postgres.query(echo, ['before'])).toEqual([{ text: 'before' }]);
    const slow: Statement = { name: 'slow', text: 'SELECT pg_sleep(30)' };
    const cutOff = [postgres.query(slow, []), postgres.transaction((query) => query(slow, []))];
    const failures = Promise.all(cutOff.map((work) => work.catch((error: unknown) => error)));
    await eventually(async () => (await activeSleeps(prepared)) === 2, 'both to be under way');
    await proxy.cut();
    for (const failure of await failures) expect(isUnavailable(failure)).toBe(true);
    const failure = await postgres.query(echo, ['gone']).catch((error: unknown) => error);
    expect(isUnavailable(failure)).toBe(true);
    await proxy.restore();
    await eventually(() => postgres.query(echo, ['back']).catch(() => undefined));
    await postgres.close();
    await proxy.cut();
    await prepared.release();
  });
});

async function activeSleeps({ settings }: PreparedStack): Promise<number> {
  const client = new pg.Client({ connectionString: settings.DATABASE_URL });
  await client.connect();
  try {
    const text = `SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(30)' AND datname = current_database()`;
    return (await client.query(text)).rowCount ?? 0;
  } finally {
    await client.end();
  }
}

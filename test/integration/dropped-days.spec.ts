import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { v7 as uuidv7 } from 'uuid';
import type { DropConnection } from '../../src/infra/postgres/detach-partitions.js';
import type { Query } from '../../src/infra/postgres/postgres.js';
import { dropExpired } from '../../src/ledger/drop-expired.js';
import { dateOf, partitionOf, partitionsBetween } from '../../src/ledger/partitions.js';
import { DayDropper } from '../../src/retention/day-dropper.service.js';
import { exportDay } from '../../src/retention/export-day.js';
import { RetentionReports } from '../../src/retention/retention-report.service.js';
import { daysCounted } from '../../src/retention/retention.counters.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';
import type { TestLedger } from '../support/ledger.js';
import { dayMs, large, mebibyte, running, TestRetention } from '../support/retention.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

describe.each(stacks)('the dropping of days on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let retention: TestRetention;
  let test: TestLedger;
  let directory: string;

  beforeAll(async () => {
    prepared = await stack.prepare();
    directory = await mkdtemp(join(tmpdir(), 'heraut-export-'));
    retention = await TestRetention.open({ ...prepared.settings, EXPORT_DIR: directory });
    ({ test } = retention);
  });
  beforeEach(() => retention.clear());
  afterAll(async () => {
    await test.close();
    await prepared.release();
    await rm(directory, { recursive: true, force: true });
  });

  /** With bodies that are kept as long as their rows. */
  const unerased = () => ({ ...test.config.settings, BODY_RETENTION_DAYS: undefined });
  const dropOld = (settings: TestLedger['config']['settings'] = unerased()) =>
    new DayDropper(test.postgres, { settings }).dropExpired(running);

  describe('a day that is dropped', () => {
    const files = () => readdir(directory);

    it('is written to a file before, whole, and reported', async () => {
      const at = await retention.makeDay(40);
      const keysOfDay = [];
      for (let nr = 0; nr < 40; nr++)
        keysOfDay.push(await retention.add(at, 'delivered', { body: `{"nr":${nr},"text":"é\\n"}` }));
      await test.sql('ANALYZE');
      await dropOld();
      const date = new Date(at).toISOString().slice(0, 10);
      expect(await files()).toEqual([`heraut-${date}.ndjson.gz`]);
      const file = join(directory, `heraut-${date}.ndjson.gz`);
      const lines = gunzipSync(await readFile(file))
        .toString()
        .trimEnd()
        .split('\n');
      const rows = lines.map((line) => JSON.parse(line) as { table: string; row: Record<string, unknown> });
      const ofTable = (name: string) => rows.filter(({ table }) => table === name).map(({ row }) => row);
      expect(new Set(ofTable('notification').map(({ body }) => body))).toEqual(
        new Set(keysOfDay.map((_, nr) => `{"nr":${nr},"text":"é\\n"}`)),
      );
      expect(new Set(ofTable('delivery').map((row) => row.subscription_id))).toEqual(
        new Set(keysOfDay.map(({ subscriptionId }) => subscriptionId)),
      );
      expect(ofTable('attempt')).toHaveLength(40);
      expect(await retention.report(at)).toMatchObject([
        {
          day: date,
          exported_file: file,
          exported_rows: 120,
          exported_bytes: (await stat(file)).size,
          notifications: 40,
          deliveries: 40,
          attempts: 40,
          dropped_at: expect.any(Date),
        },
      ]);
      await rm(file);
    });

    it('is read a few large rows at a time, also behind many small ones', async () => {
      const at = await retention.makeDay(40);
      const small = Array.from({ length: 12 }, (_, nr) => uuidv7({ msecs: at + nr }));
      await insertNotifications(retention.sql, small);
      const many = Array.from({ length: 24 }, (_, nr) => uuidv7({ msecs: at + 100 + nr }));
      await insertNotifications(retention.sql, many, { body: JSON.stringify({ text: 'x'.repeat(large) }) });
      const details = JSON.stringify({ address: '192.0.2.1:80', headers: {}, body: 'x'.repeat(large) });
      await test.sql(
        `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, details)
         SELECT id, id, 1, 1, now(), 1, $2::json FROM unnest($1::uuid[]) AS n (id)`,
        [many, details],
      );
      const { manager } = test.postgres.upkeep;
      const pages: number[] = [];
      const query = async (text: string, values?: unknown[]) => {
        const rows = (await manager.query(text, values)) as { line?: string }[];
        pages.push(rows.reduce((sum, { line }) => sum + (line?.length ?? 0), 0));
        return rows;
      };
      const partitions = partitionsBetween(at, at);
      const exporting = exportDay({ query } as DropConnection, Math.floor(at / dayMs), partitions, {
        directory,
        stopping: running,
      });
      const { file, rows } = await exporting;
      expect(rows).toBe(12 + 24 + 24);
      const lines = gunzipSync(await readFile(file)).toString();
      for (const id of [...small, ...many]) expect(lines).toContain(`"id":"${id}"`);
      // 4 MiB, the row that makes them full, and the names of the columns.
      expect(Math.max(...pages)).toBeLessThan(4 * mebibyte + large + 10_000);
      expect(pages.filter((length) => length > 3 * mebibyte)).toHaveLength(4);
      await rm(file);
    });

    it('is kept while it cannot be exported, which is reported as a task that failed, and leaves no file', async () => {
      const at = await retention.makeDay(40);
      const key = await retention.add(at, 'delivered');
      const nowhere = join(directory, 'nowhere');
      await expect(dropOld({ ...unerased(), EXPORT_DIR: nowhere })).rejects.toThrow('ENOENT');
      expect(await retention.bodyOf(key)).not.toBeNull();
      expect(await retention.report(at)).toMatchObject([
        { export_failure: expect.stringContaining('ENOENT'), export_failed_at: expect.any(Date), dropped_at: null },
      ]);
      expect(await files()).toEqual([]);
      await dropOld();
      expect(await retention.report(at)).toMatchObject([{ export_failure: null, dropped_at: expect.any(Date) }]);
      expect(await files()).toHaveLength(1);
      await rm(join(directory, (await files())[0]!));
    });

    it('is not called unexported where the process is told to stop meanwhile', async () => {
      const at = await retention.makeDay(40);
      await retention.add(at, 'delivered');
      const stopping = new AbortController();
      const query: typeof test.postgres.query = (statement, values) => {
        if (statement.name === 'find-export') stopping.abort();
        return test.postgres.query(statement, values);
      };
      const postgres = Object.create(test.postgres, { query: { value: query } }) as typeof test.postgres;
      const said: unknown[] = [];
      const spies = (['log', 'warn'] as const).map((level) =>
        vi.spyOn(Logger.prototype, level).mockImplementation((line: unknown) => void said.push(line)),
      );
      const counted = async () => (await daysCounted.get()).values;
      const before = await counted();
      try {
        await new DayDropper(postgres, { settings: unerased() }).dropExpired(stopping.signal);
      } finally {
        for (const spy of spies) spy.mockRestore();
      }
      expect(said).toEqual([]);
      expect(await counted()).toEqual(before);
      expect(await files()).toEqual([]);
      expect(await retention.report(at)).toEqual([]);
    });

    it('is not exported where that would fill the disk, and what a former try left goes, but not what another one writes', async () => {
      const at = await retention.makeDay(40);
      await retention.add(at, 'delivered');
      const date = new Date(at).toISOString().slice(0, 10);
      const [left, written] = [`heraut-${date}.ndjson.gz.partial`, `heraut-${date}.another.partial`];
      for (const name of [left, written]) await writeFile(join(directory, name), 'half');
      const hoursAgo = new Date(Date.now() - 7_200_000);
      await utimes(join(directory, left), hoursAgo, hoursAgo);
      const { manager } = test.postgres.upkeep;
      const options = { directory, stopping: running, leaveFree: Number.MAX_SAFE_INTEGER };
      const exporting = exportDay(manager, Math.floor(at / dayMs), partitionsBetween(at, at), options);
      await expect(exporting).rejects.toThrow('must stay free');
      expect(await files()).toEqual([written]);
      await rm(join(directory, written));
    });

    /** Another installation has made a file of the day's name. @returns the name of ours */
    async function dropBesideTheirs(at: number): Promise<string> {
      const date = new Date(at).toISOString().slice(0, 10);
      const [theirs, ours] = [`heraut-${date}.ndjson.gz`, `heraut-${date}-2.ndjson.gz`];
      await writeFile(join(directory, theirs), 'theirs');
      await dropOld();
      expect((await files()).toSorted()).toEqual([ours, theirs]);
      expect(await readFile(join(directory, theirs), 'utf8')).toBe('theirs');
      return ours;
    }

    it('leaves alone the file of its name that another installation made', async () => {
      const at = await retention.makeDay(40);
      await retention.add(at, 'delivered');
      const ours = await dropBesideTheirs(at);
      expect(await retention.report(at)).toMatchObject([{ exported_file: join(directory, ours) }]);
      for (const file of await files()) await rm(join(directory, file));
    });

    it('leaves its archive alone when a table of it was restored by hand, and has one more file', async () => {
      const date = new Date(await retention.makeDay(40)).toISOString().slice(0, 10);
      const [first, second] = [`heraut-${date}.ndjson.gz`, `heraut-${date}-2.ndjson.gz`];
      await dropOld();
      const archive = await readFile(join(directory, first));
      const nowhere = join(directory, 'nowhere');
      const at = await retention.makeDay(40);
      await retention.add(at, 'delivered');
      await expect(dropOld({ ...unerased(), EXPORT_DIR: nowhere })).rejects.toThrow('ENOENT');
      await dropOld();
      expect((await files()).toSorted()).toEqual([second, first].toSorted());
      expect(await readFile(join(directory, first))).toEqual(archive);
      expect(gunzipSync(await readFile(join(directory, second))).toString()).toContain('secret');
      expect(await retention.report(at)).toMatchObject([
        { exported_file: join(directory, second), dropped_at: expect.any(Date) },
      ]);
      for (const file of await files()) await rm(join(directory, file));
    });

    it('replaces its own file when it is written anew, also where that was named and not noted as written', async () => {
      const at = await retention.makeDay(40);
      await retention.add(at, 'delivered');
      await test.sql('ALTER TABLE retention_day ADD CONSTRAINT full_disk CHECK (exported_at IS NULL)');
      try {
        await expect(dropOld()).rejects.toThrow('full_disk');
      } finally {
        await test.sql('ALTER TABLE retention_day DROP CONSTRAINT full_disk');
      }
      expect(await files()).toHaveLength(1);
      await dropOld();
      expect(await files()).toHaveLength(1);
      expect(await retention.report(at)).toMatchObject([{ dropped_at: expect.any(Date) }]);
      for (const file of await files()) await rm(join(directory, file));
    });

    it('leaves alone what another installation made under the name that a former try had noted and not used', async () => {
      const at = await retention.makeDay(40);
      await retention.add(at, 'delivered');
      const query: typeof test.postgres.query = async (statement, values) => {
        const rows = await test.postgres.query(statement, values);
        if (statement.name === 'note-export-file') throw new Error('killed');
        return rows as never;
      };
      const dying = Object.create(test.postgres, { query: { value: query } }) as typeof test.postgres;
      await expect(new DayDropper(dying, { settings: unerased() }).dropExpired(running)).rejects.toThrow('killed');
      expect(await files()).toEqual([]);
      await dropBesideTheirs(at);
      for (const file of await files()) await rm(join(directory, file));
    });

    it.each(['body', 'request_key'])(
      'is not exported with a %s that is erased meanwhile, but without it later',
      async (column) => {
        const at = await retention.makeDay(40);
        const key = await retention.add(at, 'delivered');
        await test.sql(`UPDATE notification SET request_key = 'secret'`);
        const { manager } = test.postgres.upkeep;
        const query = async (text: string, values?: unknown[]) => {
          const rows: unknown = await manager.query(text, values);
          if (text.includes(`FROM ${partitionOf('attempt', Math.floor(at / dayMs))} t`))
            await test.sql(`UPDATE notification SET ${column} = NULL`);
          return rows;
        };
        const connection = { query } as DropConnection;
        const exporting = exportDay(connection, Math.floor(at / dayMs), partitionsBetween(at, at), {
          directory,
          stopping: running,
        });
        await expect(exporting).rejects.toThrow('erased while it was written');
        expect(await files()).toEqual([]);
        await dropOld();
        const file = join(directory, (await files())[0]!);
        expect(gunzipSync(await readFile(file)).toString()).toMatch(`"id":"${key.notificationId}"`);
        expect(gunzipSync(await readFile(file)).toString()).toContain(`"${column}":null`);
        await rm(file);
      },
    );

    it('is not taken from a step of retention that has begun to note what it erases', async () => {
      if (test.postgres.isEmbedded) return; // one connection: nobody else could take it
      const at = await retention.makeDay(9);
      const key = await retention.add(at, 'delivered');
      const table = partitionOf('notification', Math.floor(at / dayMs));
      const locks: unknown[] = [];
      const transaction = (work: (query: Query) => Promise<unknown>) =>
        test.postgres.transaction((query) =>
          work(async (statement, values) => {
            if (statement.name === 'lock-body-walk')
              locks.push(...(await test.sql('SELECT mode FROM pg_locks WHERE relation = $1::regclass', [table])));
            return query(statement, values);
          }),
        );
      const postgres = Object.create(test.postgres, { transaction: { value: transaction } }) as typeof test.postgres;
      await retention.eraseOld(running, undefined, postgres);
      expect(await retention.bodyOf(key)).toBeNull();
      expect(locks).toContainEqual({ mode: 'RowExclusiveLock' });
    });

    it('is dropped and noted as one, or neither', async () => {
      const at = await retention.makeDay(40);
      const key = await retention.add(at, 'delivered');
      await test.sql('INSERT INTO kept_body VALUES ($1)', [key.notificationId]);
      await test.sql('ALTER TABLE retention_day ADD CONSTRAINT full_disk CHECK (dropped_at IS NULL)');
      try {
        await expect(dropOld()).rejects.toThrow('full_disk');
      } finally {
        await test.sql('ALTER TABLE retention_day DROP CONSTRAINT full_disk');
      }
      expect(await test.sql('SELECT FROM kept_body')).toHaveLength(1);
      await dropOld();
      expect(await retention.report(at)).toMatchObject([{ dropped_at: expect.any(Date), bytes: expect.any(Number) }]);
      expect(await test.sql('SELECT FROM kept_body')).toEqual([]);
      for (const file of await files()) await rm(join(directory, file));
    });

    it('leaves the database to others while it is exported', async () => {
      const at = await retention.makeDay(40);
      await retention.add(at, 'delivered');
      const exported: string[] = [];
      await dropExpired(test.postgres, test.config.settings.RETENTION_DAYS, new Logger('test'), running, {
        copy: async (connection, { day }) => {
          await connection.query('SELECT 1');
          await insertDeliveries(retention.sql, {
            notifications: 1,
            subscriptionIds: [randomUUID()],
            state: 'waiting',
          });
          exported.push(dateOf(day));
          return true;
        },
        asDropped: () => Promise.resolve(),
        afterwards: () => Promise.resolve(),
      });
      expect(exported).toEqual([dateOf(Math.floor(at / dayMs))]);
    });

    it('is reported while it cannot be exported, or is kept, whatever number of days are newer', async () => {
      await test.sql(
        `INSERT INTO retention_day (day, kept_at, export_failed_at, export_failure, dropped_at, bytes)
         VALUES ('2020-01-01', NULL, now(), 'ENOSPC', NULL, NULL), ('2020-01-02', now(), NULL, NULL, NULL, NULL),
           ('2020-01-03', now(), NULL, NULL, now(), 1)`,
      );
      await test.sql(`INSERT INTO retention_day (day) SELECT date '2021-01-01' + n FROM generate_series(1, 501) AS n`);
      const { days } = await new RetentionReports(test.postgres, test.config).read();
      expect(days.map(({ day }) => day)).toEqual([
        ...Array.from({ length: 498 }, (_, nr) => dateOf(Date.UTC(2021, 0, 502 - nr) / dayMs)),
        '2020-01-02',
        '2020-01-01',
      ]);
    });

    it('is not exported while a delivery is not finished', async () => {
      const at = await retention.makeDay(40);
      await retention.add(at, 'waiting');
      await dropOld();
      expect(await files()).toEqual([]);
      expect(await retention.report(at)).toMatchObject([
        { kept_at: expect.any(Date), exported_at: null, dropped_at: null },
      ]);
    });
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { AuditLog, type Change } from '../../src/audit/audit-log.js';
import { actingFor } from '../../src/audit/author.js';
import { dropExpiredMonths, makeMonthsAhead } from '../../src/audit/months-kept.js';
import { createMonth, monthOf, monthsBetween } from '../../src/audit/months.js';
import { EntryReader } from '../../src/audit-entries/entry-reader.service.js';
import type { EntryFilter } from '../../src/audit-entries/find-entries.js';
import { readSettings } from '../../src/config/settings.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { stacks, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);
const dayMs = 86_400_000;

describe.each(stacks)('the audit log on the $name stack', (stack) => {
  let prepared: PreparedStack;
  let postgres: Postgres;
  let reader: EntryReader;

  beforeAll(async () => {
    prepared = await stack.prepare();
    postgres = await Postgres.open(readSettings(prepared.settings), []);
    await postgres.migrate();
    await makeMonthsAhead(postgres);
    reader = new EntryReader(postgres);
  });
  afterAll(async () => {
    await postgres.close();
    await prepared.release();
  });

  const sql = <R>(text: string, values: unknown[] = []): Promise<R[]> => postgres.dataSource.query(text, values);

  /** One more entry; by Heraut itself unless a client is given. */
  async function note({ client, ...change }: Partial<Change> & { client?: string } = {}): Promise<void> {
    const noted = { action: 'thing.changed', subject: 'thing/1', before: {}, after: {}, ...change };
    const write = () => postgres.dataSource.transaction((manager) => AuditLog.note(manager, noted));
    await (client ? actingFor({ client, address: '192.0.2.1', requestId: 'r-1' }, write) : write());
  }

  /** All pages of a list. */
  async function all(filter: EntryFilter, limit: number, rangeRows?: number) {
    const found = [];
    for (let after: EntryFilter['after'], isFirst = true; isFirst || after; isFirst = false) {
      const { entries, next } = await reader.list({ ...filter, after }, limit, rangeRows);
      found.push(...entries);
      after = next;
    }
    return found;
  }

  const months = async (): Promise<string[]> => {
    const rows = await sql<{ name: string }>("SELECT relname AS name FROM pg_class WHERE relkind = 'r' ORDER BY 1");
    return rows.map(({ name }) => name).filter((name) => monthOf(name) !== undefined);
  };

  it('keeps who, from where, what, and the fields that differ', async () => {
    const subject = `thing/${randomUUID()}`;
    const change = { subject, before: { a: 1, b: 2 }, after: { a: 1, b: 'snow ☃' }, changedSecrets: ['key'] };
    await note({ client: 'portal', ...change });
    await note({ subject, before: { a: 1 }, after: null });
    const [second, first] = (await reader.list({ subject }, 10)).entries;
    expect(first).toMatchObject({
      client: 'portal',
      address: '192.0.2.1',
      requestId: 'r-1',
      action: 'thing.changed',
      subject,
      before: { b: 2 },
      after: { b: 'snow ☃' },
      changedSecrets: ['key'],
    });
    expect(second).toMatchObject({ client: null, address: null, requestId: null, before: { a: 1 }, after: null });
    expect(first!.at.getTime()).toBeLessThanOrEqual(second!.at.getTime());
  });

  it('is written in the transaction of the change, of whichever kind: undone with it', async () => {
    const subject = `thing/${randomUUID()}`;
    const change = { action: 'thing.changed', subject, before: null, after: {} };
    const refuse = async (noted: Promise<void>): Promise<never> => {
      await noted;
      throw new Error('changed its mind');
    };
    await expect(postgres.dataSource.transaction((manager) => refuse(AuditLog.note(manager, change)))).rejects.toThrow(
      'changed its mind',
    );
    await expect(postgres.transaction((query) => refuse(AuditLog.note(query, change)))).rejects.toThrow(
      'changed its mind',
    );
    expect((await reader.list({ subject }, 10)).entries).toEqual([]);
    await postgres.transaction((query) => AuditLog.note(query, { ...change, changedSecrets: ['one', 'two'] }));
    expect((await reader.list({ subject }, 10)).entries).toMatchObject([{ changedSecrets: ['one', 'two'] }]);
  });

  it('refuses every way to change or delete an entry, in the table and in its partitions', async () => {
    await note();
    const [month] = await sql<{ name: string }>(
      'SELECT tableoid::regclass::text AS name FROM audit_entry ORDER BY nr DESC LIMIT 1',
    );
    const before = await sql('SELECT * FROM audit_entry ORDER BY nr');
    for (const table of ['audit_entry', month!.name])
      for (const way of [`UPDATE ${table} SET client = 'x'`, `DELETE FROM ${table}`, `TRUNCATE ${table}`])
        await expect([way, sql(way)][1]).rejects.toThrow('The audit log is append-only');
    expect(await sql('SELECT * FROM audit_entry ORDER BY nr')).toEqual(before);
  });

  it.each([1, 2, 7])('is listed newest first, each entry once, in pages of %d', async (limit) => {
    const [subject, client, action] = [randomUUID(), randomUUID(), `thing.${randomUUID()}`];
    const noted: Partial<Change>[] = [];
    for (let nr = 0; nr < 6; nr++) {
      const change = {
        after: { nr },
        subject: nr % 2 ? subject : `other/${nr}`,
        action: nr % 3 ? action : 'thing.made',
      };
      noted.push(change);
      await note({ client, ...change });
    }
    const numbers = async (filter: EntryFilter, rangeRows?: number) =>
      (await all(filter, limit, rangeRows)).map(({ after }) => after!.nr);
    expect(await numbers({ client })).toEqual([5, 4, 3, 2, 1, 0]);
    expect(await numbers({ subject })).toEqual([5, 3, 1]);
    expect(await numbers({ action })).toEqual([5, 4, 2, 1]);
    // Of two filters one is compared within a range of the list, however short that is.
    for (const rangeRows of [1, 2, 3, 100]) {
      expect(await numbers({ client, action }, rangeRows)).toEqual([5, 4, 2, 1]);
      expect(await numbers({ client, subject, action }, rangeRows)).toEqual([5, 1]);
      expect(await numbers({ client: 'nobody', subject }, rangeRows)).toEqual([]);
    }
  });

  it('is listed in pages that end where their entries get large, each entry once', async () => {
    const subject = `thing/${randomUUID()}`;
    const mebibyte = 1024 * 1024;
    const channels = [...'abcdefghij'].map((letter) => ({ filters: letter.repeat(mebibyte / 10 - 30) }));
    const sizes = [1, 9, 1, 4, 4, 0, 3, 3, 3];
    for (const [nr, size] of sizes.entries()) {
      const value = Array.from({ length: size }, () => channels);
      if (nr % 2) await note({ subject, before: { value }, after: { nr } });
      // As a process of the version before writes it, without its length.
      else
        await sql(
          `INSERT INTO audit_entry (at, action, subject, before, after, changed_secrets)
           VALUES (clock_timestamp(), 'thing.changed', $1, $2, $3, '{}')`,
          [subject, JSON.stringify({ nr }), JSON.stringify({ value, nr })],
        );
    }
    const [pages, numbers]: number[][] = [[], []];
    for (let after: EntryFilter['after'], isFirst = true; isFirst || after; isFirst = false) {
      const { entries, next } = await reader.list({ subject, after }, 500);
      const bytes = entries.reduce((sum, entry) => sum + JSON.stringify([entry.before, entry.after]).length, 0);
      expect(entries.length === 1 || bytes <= 8 * mebibyte).toBe(true);
      pages!.push(entries.length);
      numbers!.push(...entries.map((entry) => entry.after!['nr'] as number));
      after = next;
    }
    expect(numbers).toEqual([...sizes.keys()].reverse());
    expect(pages).toEqual([2, 3, 2, 1, 1]);
  });

  it('is listed from a time to another, which is not included', async () => {
    const client = randomUUID();
    // The embedded database's clock is as fine as a millisecond: by themselves they may be of the same one.
    await sql(
      `INSERT INTO audit_entry (at, client, action, subject, after, changed_secrets)
       SELECT now() + nr * interval '1 ms', $1, 'a', 's', json_build_object('nr', nr), '{}' FROM generate_series(0, 2) nr`,
      [client],
    );
    const entries = (await reader.list({ client }, 10)).entries.toReversed();
    const [first, second, third] = entries.map(({ key }) => key.at);
    const listed = async (filter: EntryFilter) => (await all({ client, ...filter }, 10)).map(({ after }) => after!.nr);
    expect(await listed({ from: second })).toEqual([2, 1]);
    expect(await listed({ to: second })).toEqual([0]);
    expect(await listed({ from: first, to: third })).toEqual([1, 0]);
    expect(await listed({ from: third, to: first })).toEqual([]);
  });

  it('finds a subject that is longer than an index allows, and no other that begins like it', async () => {
    const longest = `endpoint/https://host/${'é☃'.repeat(1000)}${randomUUID()}`;
    await note({ subject: longest });
    await note({ subject: `${longest}x` });
    expect(await all({ subject: longest }, 10)).toHaveLength(1);
  });

  it('has partitions for this month and the next, however often and by however many they are made', async () => {
    const wanted = monthsBetween(Date.now(), Date.now() + 31 * dayMs).map(({ name }) => name);
    await Promise.all([1, 2, 3].map(() => makeMonthsAhead(postgres)));
    expect(await months()).toEqual(expect.arrayContaining(wanted));
    const next = wanted.at(-1)!;
    await sql(`DROP TABLE ${next}`);
    await Promise.all([1, 2, 3].map(() => makeMonthsAhead(postgres)));
    expect(await months()).toContain(next);
  });

  it('drops the months that ended before the retention, at whatever stage a process that died left them', async () => {
    const events: string[] = [];
    const logger = { log: ({ event }: { event: string }) => void events.push(event) } as unknown as Logger;
    const drop = (days: number) => dropExpiredMonths(postgres, days, logger, new AbortController().signal);
    const old = monthsBetween(Date.now() - 150 * dayMs, Date.now() - 70 * dayMs);
    for (const month of old) await sql(createMonth(month));
    await sql(`INSERT INTO audit_entry (at, action, subject, changed_secrets) VALUES ($1, 'a', 's', '{}')`, [
      old[0]!.from,
    ]);
    await sql(`ALTER TABLE audit_entry DETACH PARTITION ${old[0]!.name}`);
    if (!postgres.isEmbedded)
      await sql('UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid = $1::regclass', [old[1]!.name]);

    const kept = Math.ceil((Date.now() - Date.parse(old.at(-1)!.to)) / dayMs);
    await drop(kept);
    expect((await months()).filter((name) => old.some((month) => month.name === name))).toEqual([old.at(-1)!.name]);
    await drop(kept - 1);
    expect(await months()).not.toContain(old.at(-1)!.name);
    expect(events).toEqual(old.map(() => 'audit.month-dropped'));
    await note();
  });

  it('puts a month back that has begun to leave when the retention was made longer', async () => {
    const events: string[] = [];
    const logger = { log: ({ event }: { event: string }) => void events.push(event) } as unknown as Logger;
    const [month] = monthsBetween(Date.now() - 400 * dayMs, Date.now() - 400 * dayMs);
    const drop = (days: number) => dropExpiredMonths(postgres, days, logger, new AbortController().signal);
    await sql(createMonth(month!));
    const subject = `thing/${randomUUID()}`;
    await sql(`INSERT INTO audit_entry (at, action, subject, changed_secrets) VALUES ($1, 'a', $2, '{}')`, [
      month!.from,
      subject,
    ]);
    if (postgres.isEmbedded) await sql(`ALTER TABLE audit_entry DETACH PARTITION ${month!.name}`);
    else await sql('UPDATE pg_inherits SET inhdetachpending = true WHERE inhrelid = $1::regclass', [month!.name]);
    await drop(1000);
    expect(await all({ subject }, 10)).toHaveLength(1);
    await expect(sql(`DELETE FROM ${month!.name}`)).rejects.toThrow('The audit log is append-only');
    await drop(300);
    expect(await months()).not.toContain(month!.name);
    expect(events).toEqual(['audit.month-put-back', 'audit.month-dropped']);
  });

  it('keeps nobody from reading a month that has begun to leave', async () => {
    if (postgres.isEmbedded) return; // there is nobody else
    const events: string[] = [];
    const logger = { log: ({ event }: { event: string }) => void events.push(event) } as unknown as Logger;
    const [month] = monthsBetween(Date.now() - 400 * dayMs, Date.now() - 400 * dayMs);
    const drop = () => dropExpiredMonths(postgres, 300, logger, new AbortController().signal);
    await sql(createMonth(month!));
    await sql(`ALTER TABLE audit_entry DETACH PARTITION ${month!.name}`);
    const ask = `LOCK TABLE ${month!.name} IN ACCESS SHARE MODE NOWAIT`;
    await postgres.dataSource.transaction(async (backup) => {
      await backup.query(ask);
      let isOver = false;
      const dropping = drop().finally(() => (isOver = true));
      while (!isOver) await postgres.dataSource.transaction((worker) => worker.query(ask));
      await dropping;
    });
    await drop();
    expect(events).toEqual(['audit.month-in-use', 'audit.month-dropped']);
  });

  it('puts a month back that upgrades gave none of their columns, as it had begun to leave before', async () => {
    const events: string[] = [];
    const note = ({ event }: { event: string }) => void events.push(event);
    const logger = { log: note, error: note } as unknown as Logger;
    const [month] = monthsBetween(Date.now() - 400 * dayMs, Date.now() - 400 * dayMs);
    const { name } = month!;
    await sql(createMonth(month!));
    const ofTheFirst = 'at nr client address request_id action subject before after changed_secrets'.split(' ');
    const added = await sql<{ drop: string }>(
      `SELECT 'DROP COLUMN ' || attname AS drop FROM pg_attribute
       WHERE attrelid = 'audit_entry'::regclass AND attnum > 0 AND NOT attisdropped AND attname <> ALL ($1)`,
      [ofTheFirst],
    );
    expect(added.length).toBeGreaterThan(0);
    const drops = added.map(({ drop }) => drop).join(', ');
    await sql(`ALTER TABLE audit_entry DETACH PARTITION ${name}; ALTER TABLE ${name} ${drops}`);
    for (const days of [1000, 300]) await dropExpiredMonths(postgres, days, logger, new AbortController().signal);
    expect(events).toEqual(['audit.month-put-back', 'audit.month-dropped']);
  });

  it('drops months also while one cannot be put back, which is told', async () => {
    const events: string[] = [];
    const note = ({ event }: { event: string }) => void events.push(event);
    const logger = { log: note, error: note } as unknown as Logger;
    const [due, stuck] = [800, 400].map((ago) => monthsBetween(Date.now() - ago * dayMs, Date.now() - ago * dayMs)[0]!);
    for (const month of [due!, stuck!]) await sql(createMonth(month));
    const { name } = stuck!;
    await sql(`ALTER TABLE audit_entry DETACH PARTITION ${name}; ALTER TABLE ${name} ADD COLUMN former int`);
    const drop = dropExpiredMonths(postgres, 600, logger, new AbortController().signal);
    await expect(drop).rejects.toThrow('former');
    await sql(`DROP TABLE ${name}`);
    expect(await months()).not.toContain(due!.name);
    expect(events).toEqual(['audit.month-failed', 'audit.month-dropped']);
  });
});

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Logger } from '@nestjs/common';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeMonthsAhead } from '../../src/audit/months-kept.js';
import { readSettings, type Settings } from '../../src/config/settings.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { lowestIdAt } from '../../src/ledger/partitions.js';
import { PartitionKeeper } from '../../src/ledger/partition-keeper.service.js';
import { move, type Moved } from '../../src/moving/move.js';
import { familyOf, makingOf, readTables } from '../../src/moving/tables.js';
import { kept, leftBehind, replaced } from '../../src/moving/what-moves.js';
import { embeddedKeyRing } from '../../src/secrets/key-file.js';
import { newEntry } from '../../src/secrets/key-ring.js';
import { SecretCipher } from '../../src/secrets/secret-cipher.service.js';
import { createDatabase, queryOnce, type TestDatabase } from '../support/database.js';
import { HerautProcess } from '../support/spawn-heraut.js';
import { embedded, type PreparedStack } from '../support/stacks.js';

Logger.overrideLogger(false);

const dayMs = 86_400_000;
const silent = () => {};

/**
 * Rows that would not come through as they are if anything on the way took them for something else than what they are.
 */
async function fill(postgres: Postgres, cipher: SecretCipher): Promise<void> {
  const sql = (text: string, values: unknown[] = []) => postgres.dataSource.query(text, values);
  const id = (nr: number) => `00000000-0000-4000-8000-${String(nr).padStart(12, '0')}`;
  const notification = (daysAgo: number, nr = 0) =>
    lowestIdAt(Date.now() - daysAgo * dayMs).slice(0, 24) + String(nr).padStart(12, '0');
  await sql(`UPDATE catalogue SET version = 12345678901`);
  await sql(
    `INSERT INTO channel (id, name, documentation_link, filters, deduplicate_by, version, created_at)
     VALUES ($1, 'zaken', '', $2, $3, 3, '2024-02-29 23:59:59.123456+05')`,
    [id(1), ['a"b', "c'd", 'e,{f}', ''], [null, 'x']],
  );
  await sql(
    `INSERT INTO subscription (id, owner_client_id, callback_url, auth, channels, timeout_seconds, version)
     VALUES ($1, 'owner', 'https://é.example/', $2, $3, 0.1::float8 + 0.2::float8, 4)`,
    [id(2), cipher.encrypt('Bearer x', `subscription.auth/${id(2)}`), '{"z":1, "a":"\\u0000 \\ud83d\\ude00"}'],
  );
  await sql(`INSERT INTO subscription_retry_policy VALUES ($1, '{"a":1e400}', 5)`, [id(2)]);
  await sql(`INSERT INTO signing_key VALUES ($1, $2, 'v1', $3, NULL, now(), 'infinity')`, [
    id(3),
    id(2),
    cipher.encrypt('whsec_x', `signing_key.secret/${id(3)}`),
  ]);
  // More than a page by its bytes, and more than a page by its rows; also of a day that retention had begun to take
  // out.
  for (const daysAgo of [0, 40]) {
    await sql('INSERT INTO notification (id, channel, publisher, body) SELECT $1, $2, $3, $4', [
      notification(daysAgo),
      'zaken',
      'me',
      'é\\N\t"\\u0000😀'.repeat(50_000),
    ]);
    await sql(
      `INSERT INTO notification (id, channel, publisher, body)
       SELECT ($1 || lpad(nr::text, 12, '0'))::uuid, 'zaken', 'me', repeat('x', 5000) FROM generate_series(1, 1100) AS nr`,
      [notification(daysAgo).slice(0, 24)],
    );
    await sql(
      `INSERT INTO delivery (notification_id, subscription_id, state, process, next_at)
       SELECT id, $1, 'queued', 'gone', now() FROM notification WHERE id >= $2 ON CONFLICT DO NOTHING`,
      [id(2), notification(daysAgo)],
    );
    await sql(
      `INSERT INTO attempt (notification_id, subscription_id, generation, number, started_at, duration_ms, details)
       VALUES ($1, $2, 1, 1, '-infinity', 5, '{"b": 1,  "a": "\\u0000"}')`,
      [notification(daysAgo), id(2)],
    );
  }
  await sql(
    `INSERT INTO idempotency_key VALUES ('seal', NULL, 'hash', '{"why": "\\u0000"}', now() + interval '1 day'),
       ('lock', 'gone/1', NULL, NULL, now() + interval '1 day')`,
  );
  await sql(`INSERT INTO process (id, roles, expires_at) VALUES ('gone', '{worker}', now() + interval '10 s')`);
  await sql(`INSERT INTO digest VALUES ($1, $2, '\\x00ff5c27')`, [notification(0), notification(0, 9)]);
  await sql(
    `INSERT INTO audit_entry (at, action, subject, before, changed_secrets) VALUES (now(), 'a', 'b', '{"b":1,"a":2}', '{}')`,
  );
  await sql(
    `INSERT INTO alert (rule, subject, since, details) SELECT 'rule', nr::text, now(), '{}' FROM generate_series(1, 3) AS nr`,
  );
  await sql(`INSERT INTO alert_round (singleton) VALUES (true) ON CONFLICT DO NOTHING`);
  await sql(`UPDATE alert_round SET memory = '{"remembered":true}'`);
  await sql(`SELECT nextval('turn_nr') FROM generate_series(1, 7)`);
  const table = `delivery_${new Date(Date.now() - 40 * dayMs).toISOString().slice(0, 10).replaceAll('-', '')}`;
  await sql(`ALTER TABLE delivery DETACH PARTITION ${table}`);
}

/**
 * The rows of every table as text, but for what the move changes: secrets, which are encrypted with another key, and
 * that processes are dead.
 */
async function contentsOf(database: Pick<Postgres['dataSource'], 'query'>): Promise<Map<string, string[]>> {
  const contents = new Map<string, string[]>();
  for (const { name, columns } of await readTables(database)) {
    if (leftBehind.has(name)) continue;
    const same = columns.filter(
      (column) => !/^(auth|secret|expires_at|steady_since)$/.test(column.name) || name === 'once_key',
    );
    const texts = same.map((column) => `"${column.name}"::text`).join(', ');
    const rows = await database.query<{ row: string }[]>(`SELECT ARRAY[${texts}]::text AS row FROM ${name} ORDER BY 1`);
    if (rows.length > 0)
      contents.set(
        name,
        rows.map(({ row }) => row),
      );
  }
  return contents;
}

describe('moving to Postgres', () => {
  let [prepared, database]: [PreparedStack?, TestDatabase?] = [];
  let settings: Settings;
  let contents: Map<string, string[]>;
  const DATA_DIR = () => prepared!.settings['DATA_DIR']!;
  const embeddedOnly = () => ({ ...settings, DATABASE_URL: undefined });
  const note = () => join(DATA_DIR(), 'moved-to-postgres');

  beforeAll(async () => {
    prepared = await embedded.prepare();
    settings = readSettings({ ...prepared.settings });
    const postgres = await Postgres.open(settings, []);
    await postgres.migrate();
    await makeMonthsAhead(postgres);
    const partitions = new PartitionKeeper(postgres);
    await partitions.makeAhead();
    const stamp = new Date(Date.now() - 40 * dayMs).toISOString().slice(0, 10).replaceAll('-', '');
    for (const table of ['notification', 'delivery', 'attempt'])
      await postgres.dataSource.query(makingOf(`${table}_${stamp}`)!);
    await fill(postgres, new SecretCipher(embeddedKeyRing(DATA_DIR(), true)));
    await postgres.dataSource.query(`SET timezone = 'UTC'`);
    contents = await contentsOf(postgres.dataSource);
    await postgres.close();
  });
  afterAll(() => prepared?.release());

  beforeEach(async () => {
    database = await createDatabase();
    settings = readSettings({ ...prepared!.settings, DATABASE_URL: database.url });
    const target = await Postgres.open(settings, []);
    await target.migrate();
    await target.close();
  });
  afterEach(async () => {
    await rm(note(), { force: true });
    await database?.drop();
  });

  const sql = <R extends object>(text: string) => queryOnce<R & Record<string, unknown>>(database!.url, text);
  const isEmpty = async () =>
    (await sql<{ count: number }>('SELECT count(*)::int AS count FROM subscription'))[0]!.count === 0;

  it('copies every row of every table as it is, but for the encryption of secrets and the life of processes', async () => {
    const told = new Map<string, number>();
    const moved: Moved = await move(settings, (table, rows) => void told.set(table, rows));
    const target = await Postgres.open(settings, []);
    expect(await contentsOf(target.dataSource)).toEqual(contents);
    const tables = (await readTables(target.dataSource)).map(({ name }) => familyOf(name));
    await target.close();

    expect([...moved.counts.keys(), ...leftBehind].toSorted()).toEqual([...new Set(tables)].toSorted());
    expect(moved.counts.get('notification')).toBe(2202);
    expect(Object.fromEntries(told)).toEqual(
      Object.fromEntries([...contents].map(([name, rows]) => [name, rows.length])),
    );
    // Without SECRET_KEYS they can be read, as whatever is stored then.
    expect(moved).toMatchObject({ secrets: 2, keyId: undefined });
    expect(await sql('SELECT auth, secret FROM subscription, signing_key')).toEqual([
      { auth: 'Bearer x', secret: 'whsec_x' },
    ]);
    expect(await sql('SELECT id, expires_at::text FROM process')).toEqual([{ id: 'gone', expires_at: '-infinity' }]);
    expect(await sql(`SELECT nextval('turn_nr')::int AS turn, nextval('alert_id_seq')::int AS alert`)).toEqual([
      { turn: 8, alert: 4 },
    ]);
    expect(await readFile(note(), 'utf8')).toMatch(/^moved to the Postgres at [^@]+ on \S+Z\n$/);
    await expect(Postgres.open(embeddedOnly(), [])).rejects.toThrow('everything in it was moved to the Postgres at');
  });

  it('names only tables that are there', async () => {
    const tables = await sql<{ name: string }>(
      `SELECT relname::text AS name FROM pg_class WHERE relkind IN ('r', 'p')`,
    );
    const names = tables.map(({ name }) => name);
    expect([...leftBehind, ...replaced, ...kept].filter((name) => !names.includes(name))).toEqual([]);
  });

  it('takes a Postgres on which Heraut was started to see whether that works, but not while it runs', async () => {
    const heraut = await HerautProcess.start({ settings: { DATABASE_URL: database!.url } });
    await expect(move(settings, silent)).rejects.toThrow('Heraut runs on the Postgres of DATABASE_URL');
    expect(existsSync(note())).toBe(false);
    await heraut.stop();
    await move(settings, silent);
    expect(await sql('SELECT version FROM catalogue')).toEqual([{ version: '12345678901' }]);
    expect(await sql('SELECT memory FROM alert_round')).toEqual([{ memory: { remembered: true } }]);
    expect(await isEmpty()).toBe(false);
  });

  it.each([
    [
      'a channel',
      `INSERT INTO channel (id, name, documentation_link, filters, version) VALUES (gen_random_uuid(), 'c', '', '{}', 1)`,
      'channel',
    ],
    ['a key', `INSERT INTO once_key VALUES ('', 'put', 'k', gen_random_uuid(), NULL, false, now())`, 'once_key'],
  ])('refuses a Postgres that has %s of its own', async (_, insert, table) => {
    await sql(insert);
    await expect(move(settings, silent)).rejects.toThrow(
      `The Postgres of DATABASE_URL has rows of its own (${table}), and nothing is moved into those`,
    );
    expect(await isEmpty()).toBe(true);
    expect(existsSync(note())).toBe(false);
  });

  it('refuses to begin without DATABASE_URL, and where there is no embedded database', async () => {
    await expect(move(embeddedOnly(), silent)).rejects.toThrow('Set DATABASE_URL to the Postgres');
    const empty = await mkdtemp(join(tmpdir(), 'heraut-no-data-'));
    const elsewhere = { ...settings, DATA_DIR: join(empty, 'data') };
    await expect(move(elsewhere, silent)).rejects.toThrow('There is no embedded database in DATA_DIR');
    expect(existsSync(elsewhere.DATA_DIR)).toBe(false);
    await rm(empty, { recursive: true });
  });

  it('does not say so where it could not look: in a file, or in the directory of another user', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'heraut-no-data-'));
    const elsewhere = { ...settings, DATA_DIR: join(directory, 'data') };
    await writeFile(elsewhere.DATA_DIR, '');
    await expect(move(elsewhere, silent)).rejects.toThrow('A file is in its place, or on the way there');
    await rm(elsewhere.DATA_DIR);
    // Not even root can look into this one.
    await symlink(elsewhere.DATA_DIR, elsewhere.DATA_DIR);
    await expect(move(elsewhere, silent)).rejects.toThrow('ELOOP');
    await rm(directory, { recursive: true });
  });

  it('says what to do where another container has the embedded database, or had it when it was killed', async () => {
    const lock = join(DATA_DIR(), 'heraut.lock');
    await writeFile(lock, JSON.stringify({ pid: 1, startedAt: '1', host: 'another-container' }));
    await expect(move(settings, silent)).rejects.toThrow(
      `${DATA_DIR()} is in use by process 1 on host another-container. Stop the Heraut that runs on it, and run this again. If that host is gone for good, delete ${lock} first.`,
    );
    await rm(lock);
  });

  it('says that Postgres is not there, and what to do', async () => {
    const away = { ...settings, DATABASE_URL: 'postgres://heraut@127.0.0.1:1/heraut' };
    await expect(move(away, silent)).rejects.toThrow('Is Postgres running, and is this its host and port?');
  });

  it('changes nothing where a secret cannot be read, and names its key', async () => {
    const file = join(DATA_DIR(), 'secret-keys');
    await rename(file, `${file}.away`);
    await expect(move(settings, silent)).rejects.toThrow(
      /^subscription\.auth\/.* is encrypted with the key \w+, which is not in the key ring: add that key to /,
    );
    await rename(`${file}.away`, file);
    expect(await isEmpty()).toBe(true);
    expect(existsSync(note())).toBe(false);
  });

  it('says that another key has the id of the one that is missing: a ring has each id once', async () => {
    const file = join(DATA_DIR(), 'secret-keys');
    const id = new SecretCipher(embeddedKeyRing(DATA_DIR(), false)).keyId!;
    await rename(file, `${file}.away`);
    const another = { ...settings, SECRET_KEYS: [newEntry().replace(/^[^:]+/, id)] };
    await expect(move(another, silent)).rejects.toThrow(
      /not with the one that has this id in the key ring: set SECRET_KEYS .* as it was, or give the new key another id /,
    );
    await rename(`${file}.away`, file);
    expect(await isEmpty()).toBe(true);
  });

  it('changes nothing where the clock of Postgres is behind the newest notification', async () => {
    const ahead = await Postgres.open(embeddedOnly(), []);
    const id = lowestIdAt(Date.now() + dayMs);
    await ahead.dataSource.query(`INSERT INTO notification (id, channel, publisher) VALUES ('${id}', 'c', 'p')`);
    await ahead.close();
    await expect(move(settings, silent)).rejects.toThrow(/^The clock of Postgres is 86\d+ s behind the newest/);
    const again = await Postgres.open(embeddedOnly(), []);
    await again.dataSource.query(`DELETE FROM notification WHERE id = '${id}'`);
    await again.close();
    expect(await isEmpty()).toBe(true);
  });

  describe('where the end of it goes wrong', () => {
    /** Runs when everything is committed. */
    const atCommit = (statement: string) =>
      sql(
        `CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${statement}; RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON channel DEFERRABLE INITIALLY DEFERRED
           FOR EACH ROW EXECUTE FUNCTION at_commit()`,
      );

    it('leaves both as they were where Postgres refuses to commit', async () => {
      await atCommit(`RAISE EXCEPTION 'not today'`);
      await expect(move(settings, silent)).rejects.toThrow('not today');
      expect(await isEmpty()).toBe(true);
      expect(existsSync(note())).toBe(false);
    });

    it('keeps the embedded database from being started where nobody knows, and says how to find out', async () => {
      await atCommit('PERFORM pg_terminate_backend(pg_backend_pid())');
      await expect(move(settings, silent)).rejects.toThrow('whether everything was moved is not known');
      expect(existsSync(note())).toBe(true);
    });
  });
});

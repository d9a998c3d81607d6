import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { readSettings } from '../../src/config/settings.js';
import { examine } from '../../src/doctor/examine.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { readHorizon } from '../../src/ledger/horizon.js';
import { lowestIdAt } from '../../src/ledger/partitions.js';
import { publishingLimits } from '../../src/publishing/publishing-limits.js';
import { queryOnce } from '../support/database.js';
import { testServers } from '../support/test-servers.js';

const sql = (text: string, url = testServers.databaseUrl()) => queryOnce(url, text);

/** Why a process does not start; undefined: it does. */
async function refusal(url: string): Promise<string | undefined> {
  try {
    const postgres = await Postgres.open(readSettings({ DATABASE_URL: url }), []);
    try {
      await postgres.migrate();
      return undefined;
    } finally {
      await postgres.close();
    }
  } catch (error) {
    return (error as Error).message;
  }
}

/** Of installations, each with its processes connected, whether those who fetch get anything new. */
async function whetherFetchesGoOn(...urls: string[]): Promise<boolean[]> {
  const all = await Promise.all(urls.map((url) => Postgres.open(readSettings({ DATABASE_URL: url }), [])));
  try {
    const horizons = await Promise.all(all.map((each) => readHorizon(each, 1, publishingLimits)));
    return horizons.map((horizon) => horizon > lowestIdAt(0));
  } finally {
    for (const each of all) await each.close();
  }
}

const finding = async (url: string, name: string) =>
  (await examine({ DATABASE_URL: url })).find((each) => each.name === name);

describe('a Postgres that Heraut cannot work with is refused at the start, and found by the doctor:', () => {
  let name: string;
  let url: string;

  const create = async (how = '') => {
    await sql(`CREATE DATABASE ${name} ${how}`);
    return url;
  };

  beforeEach(() => {
    name = `test_${randomUUID().replaceAll('-', '')}`;
    url = Object.assign(new URL(testServers.databaseUrl()), { pathname: `/${name}` }).href;
  });
  afterEach(() => sql(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));

  it('one that keeps from its role when the transactions of the sessions began, as it does after SET ROLE', async () => {
    const [login, owner] = [`login_${name}`, `owner_${name}`];
    await sql(`CREATE ROLE ${owner}; CREATE ROLE ${login} LOGIN IN ROLE ${owner}`);
    try {
      await create(`OWNER ${owner}`);
      await sql(`ALTER ROLE ${login} SET role = ${owner}`);
      const asLogin = Object.assign(new URL(url), { username: login }).href;
      expect(await refusal(asLogin)).toContain(`GRANT pg_read_all_stats TO ${owner}`);
      expect(await finding(asLogin, 'postgres-sessions')).toMatchObject({ verdict: 'failed' });
      await sql(`GRANT pg_read_all_stats TO ${owner}`);
      expect(await refusal(asLogin)).toBeUndefined();
      expect(await finding(asLogin, 'postgres-sessions')).toMatchObject({ verdict: 'ok' });
    } finally {
      await sql(`DROP DATABASE ${name} WITH (FORCE)`);
      await sql(`DROP ROLE ${login}; DROP ROLE ${owner}`);
    }
  });

  it('one that does not note when transactions begin', async () => {
    await create();
    await sql(`ALTER DATABASE ${name} SET track_activities = off`);
    expect(await refusal(url)).toContain('track_activities is off');
    expect(await finding(url, 'postgres-sessions')).toMatchObject({ verdict: 'failed' });
  });

  it('one whose tables are in a schema that its role does not look into, unless it was told where to look', async () => {
    const role = `restored_${name}`;
    await create();
    await sql(`CREATE ROLE ${role} LOGIN`);
    const asRole = Object.assign(new URL(url), { username: role });
    const schemas = () =>
      sql(`SELECT relnamespace::regnamespace::text AS schema FROM pg_class WHERE relname = 'catalogue'`, url);
    try {
      await sql(`CREATE SCHEMA heraut; GRANT ALL ON SCHEMA heraut, public TO ${role}`, url);
      expect(await refusal(`${url}?options=-c%20search_path%3Dheraut`)).toBeUndefined();
      const advised = `ALTER ROLE ${role} IN DATABASE ${name} SET search_path =`;
      expect(await refusal(asRole.href)).toContain(`${advised} heraut, `);
      expect(await finding(asRole.href, 'migrations')).toMatchObject({ verdict: 'failed' });
      expect(await schemas()).toEqual([{ schema: 'heraut' }]);
      // Another installation is meant to be beside that one.
      const grant = `GRANT pg_read_all_stats TO ${role}`;
      expect(await refusal(asRole.href)).toMatch(
        new RegExp(`${advised} public, and ${grant}, and to the role of the other`),
      );
      await sql(`${advised} public`);
      expect(await refusal(asRole.href)).toBeUndefined();
      expect(await schemas()).toHaveLength(2);
      const fetches = () => whetherFetchesGoOn(`${url}?options=-c%20search_path%3Dheraut`, asRole.href);
      expect(await fetches()).toEqual([true, false]); // a superuser sees all
      await sql(grant);
      expect(await fetches()).toEqual([true, true]);
    } finally {
      await sql(`DROP DATABASE ${name} WITH (FORCE)`);
      await sql(`DROP ROLE ${role}`);
    }
  });

  it('one whose tables belong to its role, in another schema than that of its name', async () => {
    const role = `own_${name}`;
    await sql(`CREATE ROLE ${role} LOGIN`);
    try {
      await create(`OWNER ${role}`);
      const asRole = Object.assign(new URL(url), { username: role }).href;
      expect(await refusal(asRole)).toBeUndefined();
      await sql(`CREATE SCHEMA ${role} AUTHORIZATION ${role}`, url);
      expect(await refusal(asRole)).toContain('tables are in the schema public');
      await sql(`ALTER ROLE ${role} SET search_path = public`);
      expect(await refusal(asRole)).toBeUndefined();
    } finally {
      await sql(`DROP DATABASE ${name} WITH (FORCE)`);
      await sql(`DROP ROLE ${role}`);
    }
  });

  it('one whose encoding has no room for every character', async () => {
    await create("TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'");
    expect(await refusal(url)).toMatch(/^Postgres cannot be used: its database has the encoding LATIN1\. .*UTF8/);
    const found = await finding(url, 'postgres');
    expect(found).toMatchObject({ verdict: 'failed', found: expect.stringMatching(/encoding LATIN1$/) });
  });
});

it('a database in SQL_ASCII keeps what comes in UTF-8: it is taken, and the doctor says what is less good there', async () => {
  const name = `bytes_${randomUUID().replaceAll('-', '')}`;
  const url = Object.assign(new URL(testServers.databaseUrl()), { pathname: `/${name}` }).href;
  await sql(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING SQL_ASCII LOCALE 'C'`);
  try {
    expect(await refusal(url)).toBeUndefined();
    const found = expect.stringMatching(/encoding SQL_ASCII$/);
    expect(await finding(url, 'postgres')).toMatchObject({ verdict: 'warning', found });
    const read = await sql(`SELECT '{"naam": "Žluťoučký 🐎"}'::json ->> 'naam' AS name`, url);
    expect(read).toEqual([{ name: 'Žluťoučký 🐎' }]);
  } finally {
    await sql(`DROP DATABASE ${name} WITH (FORCE)`);
  }
});

it('the doctor does not take having the last connection for a pooler that fails, and says how to have more', async () => {
  const name = `last_${randomUUID().replaceAll('-', '')}`;
  const url = Object.assign(new URL(testServers.databaseUrl()), { pathname: `/${name}`, username: name }).href;
  await sql(`CREATE ROLE ${name} LOGIN CONNECTION LIMIT 1`);
  try {
    await sql(`CREATE DATABASE ${name} OWNER ${name}`);
    const advice = expect.stringContaining('CONNECTION LIMIT');
    expect(await finding(url, 'postgres-pooler')).toMatchObject({ verdict: 'skipped', advice });
    expect(await finding(url, 'postgres')).toMatchObject({ verdict: 'ok' });
  } finally {
    await sql(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await sql(`DROP ROLE ${name}`);
  }
});

it('the doctor compares the connections in use with the least that a role or a database may have', async () => {
  const name = `limited_${randomUUID().replaceAll('-', '')}`;
  const url = Object.assign(new URL(testServers.databaseUrl()), { pathname: `/${name}`, username: name }).href;
  const connections = () => finding(url, 'postgres-connections');
  await sql(`CREATE ROLE ${name} LOGIN CONNECTION LIMIT 9`);
  try {
    await sql(`CREATE DATABASE ${name} OWNER ${name}`);
    const ofRole = expect.stringMatching(
      new RegExp(`^[1-9] of 9 in use \\(the CONNECTION LIMIT of the role ${name}\\)`),
    );
    expect((await connections())!.found).toEqual(ofRole);
    await sql(`ALTER ROLE ${name} CONNECTION LIMIT -1; ALTER DATABASE ${name} CONNECTION LIMIT 9`);
    const ofDatabase = expect.stringMatching(/^[1-9] of 9 in use \(the CONNECTION LIMIT of the database\)/);
    expect((await connections())!.found).toEqual(ofDatabase);
  } finally {
    await sql(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await sql(`DROP ROLE ${name}`);
  }
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { readSettings } from '../../src/config/settings.js';
import { examine } from '../../src/doctor/examine.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
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

  it('one whose encoding has no room for every character', async () => {
    await create("TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'");
    expect(await refusal(url)).toMatch(/^Postgres cannot be used: its database has the encoding LATIN1\. .*UTF8/);
    const found = await finding(url, 'postgres');
    expect(found).toMatchObject({ verdict: 'failed', found: expect.stringMatching(/encoding LATIN1$/) });
  });
});

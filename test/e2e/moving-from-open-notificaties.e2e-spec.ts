import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readFileSync } from 'node:fs';
import pg from 'pg';
import { parse } from 'yaml';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import { AdminApi } from '../support/admin-api.js';
import { createEmptyDatabase, type TestDatabase } from '../support/database.js';
import { secretWatch } from '../support/secret-watch.js';

const page = readFileSync(new URL('../../docs/moving-from-open-notificaties.md', import.meta.url), 'utf8');
const queries = /```sql\n(.*?)```/s.exec(page)![1]!;

/** As far as the queries name them. */
const tables = `
  CREATE TABLE vng_api_common_jwtsecret (id serial PRIMARY KEY, identifier varchar(50) UNIQUE, secret varchar(255));
  CREATE TABLE datamodel_kanaal (id serial PRIMARY KEY, uuid uuid UNIQUE, naam varchar(50) UNIQUE,
    documentatie_link varchar(200), filters varchar(100)[]);
  CREATE TABLE datamodel_abonnement (id serial PRIMARY KEY, uuid uuid UNIQUE, callback_url varchar(200),
    auth varchar(1000), client_id varchar(100), auth_type varchar(50), secret varchar(255),
    oauth2_token_url varchar(1000), oauth2_scope varchar(255), send_cloudevents boolean);
  CREATE TABLE datamodel_filtergroup (id serial PRIMARY KEY, abonnement_id integer, kanaal_id integer);
  CREATE TABLE datamodel_filter (id serial PRIMARY KEY, key varchar(100), value varchar(1000), filter_group_id integer);`;

const rows = `
  INSERT INTO vng_api_common_jwtsecret (identifier, secret)
    VALUES ('open-zaak', 'quote " \\ and: ''secret'' # é'), ('objecten', 'a-secret-of-objecten');
  INSERT INTO datamodel_kanaal (naam, documentatie_link, filters)
    VALUES ('zaken', 'https://docs.example.nl/#zaken', '{bronorganisatie,zaaktype}'), ('objecten', '', '{}');
  INSERT INTO datamodel_abonnement (uuid, callback_url, auth, client_id, auth_type, secret, oauth2_token_url,
    oauth2_scope, send_cloudevents)
  VALUES
    ('7bd3cb46-8a0e-4e4c-9d5a-6a5d2a1d8f33', 'https://a.example.nl/', 'Token of-the-key', 'objecten', 'api_key', '', '', '', false),
    ('3a0f6a53-5b0e-4b8c-8a63-1f4f1d9f3c44', 'https://b.example.nl/', '', 'notificaties', 'zgw', 'secret-of-the-zgw', '', '', false),
    ('9d8f2c5e-0b36-4c0f-bb1a-77e7f0f3a255', 'https://c.example.nl/', '', 'objecten', 'oauth2_client_credentials',
      'secret-of-the-client', 'https://login.example.nl/token', '', false),
    ('5e2b1c7a-93d4-4f0e-8c15-2d6a7b8c9d01', 'https://d.example.nl/', '', 'objecten', 'no_auth', '', '', '', false),
    ('6f3c2d8b-a4e5-4a1f-9d26-3e7b8c9d0e12', 'https://e.example.nl/', 'Token of-events', 'objecten', 'api_key', '', '', '', true),
    ('1c9e4f70-2b6d-4d83-8e5a-4f8c9d0e1f23', 'https://nrc.example.nl/nrc/api/v1/callbacks', 'Bearer of-itself', 'objecten', 'api_key', '', '', '', false);
  INSERT INTO datamodel_filtergroup (abonnement_id, kanaal_id) VALUES (1, 1), (1, 1), (2, 2), (5, 2);
  INSERT INTO datamodel_filter (key, value, filter_group_id)
    VALUES ('bronorganisatie', '002220647', 1), ('zaaktype', 'https://z.example.nl/1', 1), ('bronorganisatie', '1', 2);`;

describe('the page', () => {
  it('names the setting without which URLs begin with http:// behind a proxy, and has one look at them first', () => {
    const [settings, changeOver] = [/## Its settings(.*?)\n## /s, /## The change-over(.*)/s].map(
      (section) => section.exec(page)![1]!,
    );
    expect(settings).toContain('TRUST_FORWARDED_HEADERS=true');
    expect(changeOver!.indexOf('https://')).toBeGreaterThan(0);
    expect(changeOver!.indexOf('https://')).toBeLessThan(changeOver!.indexOf('Lead the host'));
  });
});

describe('the contents of the database of Open Notificaties', () => {
  let theirs: TestDatabase;
  let admin: AdminApi;
  beforeAll(async () => {
    secretWatch.know(
      'of-the-key',
      'secret-of-the-zgw',
      'secret-of-the-client',
      'a-secret-of-objecten',
      'of-events',
      'of-itself',
    );
    theirs = await createEmptyDatabase();
    admin = await AdminApi.start({ ROLES: 'api' });
  });
  afterAll(async () => {
    await admin.close();
    await theirs.drop();
  });

  /** As psql writes them. */
  async function fileOf(prepare: string): Promise<Record<string, unknown>> {
    const client = new pg.Client({ connectionString: theirs.url });
    await client.connect();
    try {
      await client.query(prepare);
      const results = (await client.query(queries)) as unknown as pg.QueryResult<Record<string, string>>[];
      return parse(results.map((result) => Object.values(result.rows[0]!)[0]!).join('\n')) as Record<string, unknown>;
    } finally {
      await client.end();
    }
  }

  it('are written by the queries of the page as a file that can be applied, with ids, owners, secrets and filters', async () => {
    expect(await fileOf(tables)).toEqual({ applications: [], channels: [], subscriptions: [] });
    const file = await fileOf(rows);
    // Not its own, by which it hears of changed rights: that would call Heraut.
    expect((file.subscriptions as { callbackUrl: string }[]).map(({ callbackUrl }) => callbackUrl).sort()).toEqual(
      ['a', 'b', 'c', 'd', 'e'].map((name) => `https://${name}.example.nl/`),
    );
    const apply = (body: unknown) => admin.api.post(`${admin.api.origin}/admin/v1/configuration/apply`, body);
    const applied = await apply(file);
    expect([applied.status, (applied.json as { invalidParams?: unknown }).invalidParams]).toEqual([200, undefined]);
    expect((await apply(file)).json).toMatchObject({ changes: [] });

    const get = (id: string) => admin.api.app.get(SubscriptionsService).get(id);
    expect(await get('7bd3cb46-8a0e-4e4c-9d5a-6a5d2a1d8f33')).toMatchObject({
      ownerClientId: 'objecten',
      callbackUrl: 'https://a.example.nl/',
      auth: 'Token of-the-key',
      channels: [
        { channel: 'zaken', filters: { bronorganisatie: '002220647', zaaktype: 'https://z.example.nl/1' } },
        { channel: 'zaken', filters: { bronorganisatie: '1' } },
      ],
    });
    expect(await get('3a0f6a53-5b0e-4b8c-8a63-1f4f1d9f3c44')).toMatchObject({
      ownerClientId: 'superuser', // nobody there has that client id
      credentials: { kind: 'zgw', clientId: 'notificaties', secret: 'secret-of-the-zgw' },
      channels: [{ channel: 'objecten', filters: {} }],
    });
    expect(await get('9d8f2c5e-0b36-4c0f-bb1a-77e7f0f3a255')).toMatchObject({
      credentials: { kind: 'oauth2', tokenUrl: 'https://login.example.nl/token', clientSecret: 'secret-of-the-client' },
    });
    expect(await get('5e2b1c7a-93d4-4f0e-8c15-2d6a7b8c9d01')).toMatchObject({ auth: '', channels: [] });
    expect(await get('6f3c2d8b-a4e5-4a1f-9d26-3e7b8c9d0e12')).toMatchObject({ channels: [] });
    expect(file.applications).toContainEqual(
      expect.objectContaining({ clientId: 'open-zaak', secret: "quote \" \\ and: 'secret' # é" }),
    );
  });
});

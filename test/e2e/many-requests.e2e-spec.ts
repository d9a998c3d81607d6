import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { scopes } from '../../src/auth/scopes.js';
import { AdminApi } from '../support/admin-api.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { signToken } from '../support/tokens.js';

/** Of one caller: two have a turn, and 200 may wait for one. */
const [atOnce, inLine, beyond] = [2, 200, 40];

describe('many requests of one caller', () => {
  let database: TestDatabase;
  let admin: AdminApi;
  let other: pg.Client;

  beforeAll(async () => {
    database = await createDatabase();
    admin = await AdminApi.start({ DATABASE_URL: database.url, DATABASE_POOL_SIZE: '4', DATABASE_TIMEOUT: '60' });
    other = new pg.Client({ connectionString: database.url });
    await other.connect();
  });
  afterAll(async () => {
    await other.end();
    await admin.close();
    await database.drop();
  });

  it.each([
    {
      what: 'changes',
      lock: 'UPDATE catalogue SET version = version', // each change keeps its connection until that ends
      prepare: async () => {
        const token = await admin.api.tokenWith(scopes.publish);
        const body = { naam: 'cases', documentatieLink: '', filters: [] };
        const { url } = (await admin.api.post('/kanaal', body)).json as { url: string };
        return () => admin.api.call('PUT', url, { body, token });
      },
    },
    {
      what: 'searches',
      lock: 'LOCK TABLE audit_entry IN ACCESS EXCLUSIVE MODE',
      prepare: async () => {
        const operator = { clientId: randomUUID(), secret: randomUUID() };
        await admin.post('/admin/v1/applications', { ...operator, label: 'Operator', isSuperuser: true });
        return () => admin.get('/admin/v1/audit', { token: signToken(operator) });
      },
    },
  ])(
    'are refused beyond what may wait, while the process stays ready and carries out those of others: $what',
    async ({ lock, prepare }) => {
      const send = await prepare();
      await other.query('BEGIN');
      await other.query(lock);
      const answered: { status: number; code: unknown; retryAfter: string | null }[] = [];
      const requests = Array.from({ length: atOnce + inLine + beyond }, async () => {
        const { status, json, headers } = await send();
        answered.push({ status, code: json.code, retryAfter: headers.get('retry-after') });
      });
      await eventually(() => answered.length >= beyond, 'those beyond to be refused');
      const refused = { status: 429, code: 'too-many-requests', retryAfter: '5' };
      expect(new Set(answered.map((answer) => JSON.stringify(answer)))).toEqual(new Set([JSON.stringify(refused)]));
      const ready = await admin.api.get(`${admin.api.origin}/health/ready`, { token: null });
      expect(ready).toMatchObject({ status: 200, json: { parts: { postgres: { status: 'up' } } } });
      expect((await admin.get('/admin/v1/deliveries')).status).toBe(200);

      await other.query('COMMIT');
      await Promise.all(requests);
      expect(new Set(answered.map(({ status }) => status))).toEqual(new Set([429, 200]));
      expect((await send()).status).toBe(200);
    },
  );
});

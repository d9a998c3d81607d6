import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { Upkeep } from '../../src/dispatching/upkeep.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { AdminApi } from '../support/admin-api.js';
import { eventually } from '../support/eventually.js';

describe('a replay whose request may be repeated', () => {
  let admin: AdminApi;

  beforeAll(async () => {
    admin = await AdminApi.start({ AUDIT_RETENTION_DAYS: '1', IDEMPOTENCY_KEY_TTL_SEC: '172800' });
  });

  afterAll(async () => {
    await admin.close();
  });

  it('is kept as long as the key of its request, also beyond AUDIT_RETENTION_DAYS', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    const body = { selection: { channels: [randomUUID()] } };
    const ask = () => admin.post('/admin/v1/replays', body, { headers });
    const { status, json } = await ask();
    expect(status).toBe(201);
    const read = () => admin.get(`/admin/v1/replays/${json.id}`);
    await eventually(async () => (await read()).json['endedAt'] !== null, 'the replay to have ended');
    const sweepAfter = async (hours: number) => {
      const ago = [json.id, hours];
      const { dataSource } = admin.api.app.get(Postgres);
      await dataSource.query("UPDATE replay SET ended_at = now() - $2 * interval '1 hour' WHERE id = $1", ago);
      const { tasks } = admin.api.app.get(Upkeep, { strict: false });
      await tasks.find(({ name }) => name === 'sweep-replays')!.run(new AbortController().signal);
    };
    await sweepAfter(47);
    const again = await ask();
    expect([again.status, again.json.id, again.headers.get('idempotent-replayed')]).toEqual([201, json.id, 'true']);
    await sweepAfter(49);
    expect((await read()).status).toBe(404);
  });
});

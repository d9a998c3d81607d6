import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { OpenEndpoints } from '../../src/endpoints/open-endpoints.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { AdminApi } from '../support/admin-api.js';

const path = '/admin/v1/endpoints';

describe('open endpoints, as an operator sees them', () => {
  let admin: AdminApi;
  let origin: string;

  beforeAll(async () => {
    admin = await AdminApi.start({ TEST_CALLBACK_AUTH: 'false' });
  });
  beforeEach(() => {
    // A name that is never resolved: nobody calls it here.
    origin = `https://${randomUUID()}.invalid`;
  });
  afterAll(() => admin.close());

  const open = (address: string, reason = 'ECONNREFUSED') => admin.api.app.get(OpenEndpoints).open(address, reason, 5);
  const listed = async () => (await admin.get(path)).json.endpoints as { address: string; subscriptionCount: number }[];
  const reset = (body: unknown, request?: object) => admin.post(`${path}/reset`, body, request);

  /** A subscription that was proved when its callback still answered. */
  const subscribe = (callbackUrl: string) =>
    admin.api.app.get(Postgres).dataSource.transaction((manager) =>
      manager.query(
        `WITH changed AS (UPDATE catalogue SET version = version + 1 RETURNING version)
         INSERT INTO subscription (id, owner_client_id, callback_url, auth, channels, version)
         SELECT gen_random_uuid(), 'owner', $1, '', '[]', version FROM changed`,
        [callbackUrl],
      ),
    );

  it('are listed with what is known of them, and with how many subscriptions lead there', async () => {
    const other = `https://${randomUUID()}.invalid`;
    for (const url of [`${origin}/1`, `${origin}/2`, `${origin}/2`, `${other}/1`, `${other}/2`]) await subscribe(url);
    await open(origin, 'ETIMEDOUT');
    await open(`${other}/1`, 'HTTP 500');
    const { json } = await admin.get(path);
    expect(json.endpoints).toEqual([
      {
        address: origin,
        reason: 'ETIMEDOUT',
        openedAt: expect.any(String),
        failureCount: 5,
        probeCount: expect.any(Number),
        nextProbeAt: expect.any(String),
        subscriptionCount: 3,
      },
      expect.objectContaining({ address: `${other}/1`, subscriptionCount: 1 }),
    ]);
    await reset({ address: origin });
    await reset({ address: `${other}/1` });
  });

  it('are closed by a reset, which is reported', async () => {
    await open(`${origin}/a?b=c%20d`);
    expect((await reset({ address: `${origin}/a?b=c%20d` })).status).toBe(204);
    expect(await listed()).toEqual([]);
    expect(admin.api.logged).toContainEqual(
      expect.objectContaining({ event: 'endpoint.closed', address: `${origin}/a?b=c%20d`, by: 'operator' }),
    );
  });

  it('are known here although another process opened them a moment ago', async () => {
    await admin.api.app
      .get(Postgres)
      .dataSource.query(
        `INSERT INTO endpoint (address, reason, failures, next_probe_at) VALUES ($1, 'reset', 5, now())`,
        [origin],
      );
    expect((await listed()).map(({ address }) => address)).toEqual([origin]);
    await reset({ address: origin });
  });

  it('are not reset where they are not open', async () => {
    const { status, json } = await reset({ address: origin });
    expect([status, json.code]).toEqual([404, 'not_found']);
  });

  it.each<[unknown, string]>([
    [{}, 'address required'],
    [{ address: '' }, 'address blank'],
    [{ address: 1 }, 'address invalid'],
    [{ address: `https://${'a'.repeat(2048)}/` }, 'address max_length'],
    [{ address: 'https://a.invalid\0' }, 'address invalid'],
    [{ address: 'https://a.invalid', force: true }, 'force unknown'],
  ])('are not reset by %j', async (body, refusal) => {
    const { status, json } = await reset(body);
    expect([status, json.invalidParams?.map(({ name, code }) => `${name} ${code}`)]).toEqual([400, [refusal]]);
  });

  it('are for superusers only', async () => {
    const token = await admin.api.tokenWith('notificaties.consumeren');
    expect((await admin.get(path, { token })).status).toBe(403);
    expect((await reset({ address: origin }, { token })).status).toBe(403);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { newEntry } from '../../src/secrets/key-ring.js';
import { AdminApi } from '../support/admin-api.js';
import { superuser } from '../support/api.js';
import { createDatabase } from '../support/database.js';
import { signToken } from '../support/tokens.js';

const path = '/admin/v1/applications';

/** Secrets as other systems make them. */
const asItWas = 'as it was in the other system, with spaces';
const chosen = 'chosen by an operator';

describe('applications', () => {
  let admin: AdminApi;

  beforeAll(async () => {
    admin = await AdminApi.start();
  });

  afterAll(async () => {
    await admin.close();
  });

  const newClientId = () => `client ${randomUUID()}`;

  /** Whether a call with this token reaches what needs the scope to consume. */
  const mayConsume = async (clientId: string, secret: string) =>
    (await admin.api.get('/abonnement', { token: signToken({ clientId, secret }) })).status === 200;

  it('shows the secret it made once, and the secret works', async () => {
    const clientId = newClientId();
    const created = await admin.post(path, { clientId, label: 'Zaken', scopes: ['notificaties.consumeren'] });
    expect(created.status).toBe(201);
    expect(created.headers.get('cache-control')).toBe('no-store');
    const { secret, ...shown } = created.json;
    expect(shown).toMatchObject({ clientId, label: 'Zaken', scopes: ['notificaties.consumeren'], isSuperuser: false });
    expect(secret).toHaveLength(43); // 256 bits
    expect(await mayConsume(clientId, secret)).toBe(true);

    const read = await admin.get(`${path}/${shown.id}`);
    expect(read.json).toEqual(shown);
    expect(created.headers.get('etag')).toBe(read.headers.get('etag'));
    const list = await admin.get(path);
    expect(list.json.applications).toContainEqual(shown);
    expect(list.text).not.toContain(secret);
    expect(JSON.stringify(admin.api.logged)).not.toContain(secret);
  });

  describe('are listed', () => {
    const marker = randomUUID();
    /** By client id, whatever the collation of the database makes of capitals and accents. */
    let clientIds: string[];
    let ids: Map<string, string>;
    const list = async (query: Record<string, string>) => {
      const { status, json } = await admin.get(`${path}?${new URLSearchParams({ text: marker, ...query }).toString()}`);
      expect(status).toBe(200);
      const { applications, count, nextCursor } = json;
      const found = (applications as { clientId: string }[]).map(({ clientId }) => clientId);
      return { found, count, cursor: nextCursor ?? '' };
    };

    const create = async (clientId: string) => {
      const { json } = await admin.post(path, { clientId, label: `Label ${clientId.split(' ')[0]}` });
      ids.set(clientId, json.id);
    };

    beforeAll(async () => {
      ids = new Map();
      for (const name of ['b', 'A', 'é', 'a', 'Z']) await create(`${name} ${marker}`);
      const { applications } = (await admin.get(path)).json;
      clientIds = (applications as { clientId: string }[]).map(({ clientId }) => clientId).filter((id) => ids.has(id));
    });

    it('all in one answer, unless a limit is asked for', async () => {
      expect(clientIds).toHaveLength(5);
      expect(await list({})).toEqual({ found: clientIds, count: 5, cursor: '' });
    });

    it('page by page, also where the last one of a page was deleted meanwhile', async () => {
      const first = await list({ limit: '2' });
      expect([first.found, first.count]).toEqual([clientIds.slice(0, 2), 5]);
      await admin.delete(`${path}/${ids.get(clientIds[1]!)}`);
      const second = await list({ limit: '2', cursor: first.cursor });
      expect([second.found, second.count]).toEqual([clientIds.slice(2, 4), 4]);
      const third = await list({ limit: '2', cursor: second.cursor });
      expect([third.found, third.cursor]).toEqual([clientIds.slice(4), '']);
      await create(clientIds[1]!);
    });

    it('by a part of id, client id or label, in any case of letters', async () => {
      const [clientId] = clientIds;
      for (const text of [ids.get(clientId!)!, clientId!.toUpperCase()])
        expect((await list({ text })).found).toContain(clientId);
      expect((await list({ text: 'LABEL É' })).found).toContain(`é ${marker}`);
      expect(await list({ text: randomUUID() })).toEqual({ found: [], count: 0, cursor: '' });
    });

    it.each(['limit=0', 'limit=501', 'cursor=AAAA', 'text='])('but not by ?%s', async (query) => {
      const { status, json } = await admin.get(`${path}?${query}`);
      expect([status, json.invalidParams.map(({ name }) => name)]).toEqual([400, [query.split('=')[0]]]);
    });
  });

  it('carries existing credentials over', async () => {
    const clientId = newClientId();
    const { json } = await admin.post(path, {
      clientId,
      label: 'Old',
      secret: asItWas,
      scopes: ['notificaties.consumeren'],
    });
    expect(json.secret).toBe(asItWas);
    expect(await mayConsume(clientId, asItWas)).toBe(true);
  });

  it('gives no scope that was not asked for', async () => {
    const clientId = newClientId();
    const { json } = await admin.post(path, { clientId, label: 'None' });
    expect(json.scopes).toEqual([]);
    expect(await mayConsume(clientId, json.secret)).toBe(false);
  });

  it('changes only what is given, also for a token that is in use', async () => {
    const clientId = newClientId();
    const { json } = await admin.post(path, { clientId, label: 'Before', scopes: ['notificaties.consumeren'] });
    expect(await mayConsume(clientId, json.secret)).toBe(true);

    const changed = await admin.patch(`${path}/${json.id}`, { scopes: [] });
    expect(changed.json).toMatchObject({ label: 'Before', scopes: [], isSuperuser: false });
    expect(await mayConsume(clientId, json.secret)).toBe(false);

    expect((await admin.patch(`${path}/${json.id}`, { label: 'After', isSuperuser: true })).json).toMatchObject({
      label: 'After',
      scopes: [],
      isSuperuser: true,
    });
    const token = signToken({ clientId, secret: json.secret });
    expect((await admin.get(path, { token })).status).toBe(200);
  });

  describe('created under an Idempotency-Key', () => {
    const create = (key: string, body: object, token?: string) =>
      admin.post(path, body, { headers: { 'idempotency-key': key }, token });
    const namesOf = async () => (await admin.get(path)).json.applications as { clientId: string }[];

    it('are created once, and the answer comes again, marked', async () => {
      const [key, body] = [randomUUID(), { clientId: newClientId(), label: 'Zaken' }];
      const [first, second] = [await create(key, body), await create(`"${key}"`, body)];
      expect([first.status, second.status]).toEqual([201, 201]);
      const { secret: _secret, ...shown } = first.json;
      expect(second.json).toEqual(shown);
      expect(second.headers.get('cache-control')).toBe('no-store');
      expect(second.headers.get('etag')).toBe(first.headers.get('etag'));
      expect([first, second].map(({ headers }) => headers.get('idempotent-replayed'))).toEqual([null, 'true']);
      expect((await namesOf()).filter(({ clientId }) => clientId === body.clientId)).toHaveLength(1);
    });

    it('show their secret in the first answer only, whether it was made or given, and also after it was rotated', async () => {
      for (const given of [undefined, asItWas]) {
        const [key, body] = [randomUUID(), { clientId: newClientId(), label: 'Zaken', secret: given }];
        const { json } = await create(key, body);
        const again = await create(key, body);
        expect(again.json).not.toHaveProperty('secret');
        expect(again.text).not.toContain(json.secret);
        const rotated = await admin.post(`${path}/${json.id}/rotate-secret`);
        expect((await create(key, body)).text).not.toContain(rotated.json.secret);
      }
    });

    it('are one, however many ask for it at once', async () => {
      const [key, body] = [randomUUID(), { clientId: newClientId(), label: 'Zaken' }];
      const answers = await Promise.all(Array.from({ length: 10 }, () => create(key, body)));
      const ofStatus = (status: number) => answers.filter((answer) => answer.status === status);
      expect(ofStatus(201).length).toBeGreaterThan(0);
      expect(ofStatus(201).length + ofStatus(409).length).toBe(10);
      for (const { json } of ofStatus(409)) expect(json.code).toBe('idempotency-key-in-flight');
      expect(new Set(ofStatus(201).map(({ json }) => json.id)).size).toBe(1);
      expect(ofStatus(201).filter(({ json }) => 'secret' in json)).toHaveLength(1);
    });

    it('are not made anew, nor shown as if they were there, once they were deleted', async () => {
      const [key, body] = [randomUUID(), { clientId: newClientId(), label: 'Zaken' }];
      const { json } = await create(key, body);
      await admin.delete(`${path}/${json.id}`);
      const again = await create(key, body);
      expect([again.status, again.json.code]).toEqual([409, 'deleted-meanwhile']);
      for (const name of ['etag', 'idempotent-replayed']) expect(again.headers.get(name)).toBeNull();
      expect((await create(randomUUID(), body)).status).toBe(201);
    });

    it('are refused under a key that was used for another', async () => {
      const [key, body] = [randomUUID(), { clientId: newClientId(), label: 'Zaken' }];
      await create(key, body);
      const { status, json } = await create(key, { ...body, label: 'Other' });
      expect([status, json.code]).toEqual([422, 'idempotency-key-reused']);
    });

    it('leave nothing by which a secret that was given could be guessed, where secrets are encrypted', async () => {
      const [older, newer] = [newEntry(), newEntry()];
      const database = await createDatabase();
      const [key, body] = [randomUUID(), { clientId: newClientId(), label: 'Zaken', secret: asItWas }];
      const headers = { 'idempotency-key': key };
      const before = await AdminApi.start({ DATABASE_URL: database.url, SECRET_KEYS: older });
      expect((await before.post(path, body, { headers })).status).toBe(201);
      const rows: { request_hash: string }[] = await before.api.app
        .get(Postgres)
        .dataSource.query('SELECT request_hash FROM once_key WHERE key = $1', [key]);
      expect(rows.map(({ request_hash: hash }) => hash.startsWith(`enc:${older.split(':')[0]}:`))).toEqual([true]);
      await before.close();
      // Another key encrypts now.
      const after = await AdminApi.start({ DATABASE_URL: database.url, SECRET_KEYS: `${newer},${older}` });
      const again = await after.post(path, body, { headers });
      expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
      const other = await after.post(path, { ...body, secret: chosen }, { headers });
      expect([other.status, other.json.code]).toEqual([422, 'idempotency-key-reused']);
      await after.close();
      await database.drop();
    });

    it('leave the key free when they are refused', async () => {
      const [key, clientId] = [randomUUID(), newClientId()];
      const taken = await admin.post(path, { clientId, label: 'First' });
      expect((await create(key, { clientId, label: 'Second' })).status).toBe(400);
      await admin.delete(`${path}/${taken.json.id}`);
      const { status, headers } = await create(key, { clientId, label: 'Second' });
      expect([status, headers.get('idempotent-replayed')]).toEqual([201, null]);
    });

    it('do not share keys between superusers', async () => {
      const [key, clientId] = [randomUUID(), newClientId()];
      const { json } = await admin.post(path, { clientId, label: 'Operator', isSuperuser: true });
      const token = signToken({ clientId, secret: json.secret });
      const one = await create(key, { clientId: newClientId(), label: 'One' });
      const other = await create(key, { clientId: newClientId(), label: 'Other' }, token);
      expect([one.status, other.status]).toEqual([201, 201]);
    });

    it.each(['', '"', 'é'.normalize('NFC'), 'x'.repeat(256)])('are refused with the key %j', async (key) => {
      const { status, json } = await create(key, { clientId: newClientId(), label: 'Zaken' });
      expect([status, json.code]).toEqual([400, 'idempotency-key-invalid']);
    });
  });

  it('refuses the old secret at once when it is rotated or replaced', async () => {
    const clientId = newClientId();
    const { json } = await admin.post(path, { clientId, label: 'Keys', scopes: ['notificaties.consumeren'] });
    expect(await mayConsume(clientId, json.secret)).toBe(true);

    const rotated = await admin.post(`${path}/${json.id}/rotate-secret`);
    expect(rotated.status).toBe(200);
    expect(rotated.headers.get('cache-control')).toBe('no-store');
    expect(rotated.json.secret).not.toBe(json.secret);
    expect(await mayConsume(clientId, json.secret)).toBe(false);
    expect(await mayConsume(clientId, rotated.json.secret)).toBe(true);

    const replaced = await admin.patch(`${path}/${json.id}`, { secret: chosen });
    expect(replaced.text).not.toContain(chosen);
    expect(await mayConsume(clientId, rotated.json.secret)).toBe(false);
    expect(await mayConsume(clientId, chosen)).toBe(true);
  });

  it('makes no new secret for somebody who sends one along', async () => {
    const { json: made } = await admin.post(path, { clientId: newClientId(), label: 'Keys' });
    const rotate = `${path}/${made.id}/rotate-secret`;
    const refused = await admin.post(rotate, { secret: chosen });
    expect([refused.status, refused.json.invalidParams]).toEqual([
      400,
      [{ name: 'nonFieldErrors', code: 'unknown', reason: 'This operation takes no body.' }],
    ]);
    expect((await admin.post(rotate, {})).status).toBe(200);
  });

  it('says since when an application has its secret', async () => {
    const { json: made } = await admin.post(path, { clientId: newClientId(), label: 'Keys', secret: chosen });
    expect(made.secretSetAt).toBe(made.createdAt);
    const setAgain = async (secret: string) =>
      (await admin.patch(`${path}/${made.id}`, { secret })).json.secretSetAt as string;
    expect(await setAgain(chosen)).toBe(made.createdAt); // the same
    const later = await setAgain(`${chosen}-another`);
    expect(later > String(made.createdAt)).toBe(true);
    const { json: rotated } = await admin.post(`${path}/${made.id}/rotate-secret`);
    expect(String(rotated.secretSetAt) > later).toBe(true);
    expect((await admin.get(`${path}/${made.id}`)).json.secretSetAt).toBe(rotated.secretSetAt);
  });

  it('refuses the tokens of an application that was deleted, and lets its client id be used again', async () => {
    const clientId = newClientId();
    const { json } = await admin.post(path, { clientId, label: 'Gone', scopes: ['notificaties.consumeren'] });
    expect((await admin.delete(`${path}/${json.id}`)).status).toBe(204);
    expect(await mayConsume(clientId, json.secret)).toBe(false);
    expect((await admin.get(`${path}/${json.id}`)).status).toBe(404);
    expect((await admin.delete(`${path}/${json.id}`)).status).toBe(404);

    const again = await admin.post(path, { clientId, label: 'Back', scopes: ['notificaties.consumeren'] });
    expect(again.status).toBe(201);
    expect(await mayConsume(clientId, json.secret)).toBe(false);
    expect(await mayConsume(clientId, again.json.secret)).toBe(true);
  });

  it.each([
    [
      'of another application',
      async () => {
        const clientId = newClientId();
        await admin.post(path, { clientId, label: 'First' });
        return clientId;
      },
    ],
    ['of the superuser of the settings', () => Promise.resolve(superuser.clientId)],
  ])('does not give away the client id %s', async (_whose, taken) => {
    const { status, json } = await admin.post(path, { clientId: await taken(), label: 'Second' });
    expect(status).toBe(400);
    expect(json.invalidParams).toMatchObject([{ name: 'clientId', code: 'unique' }]);
  });

  it.each<[string, object, [string, string][]]>([
    [
      'nothing',
      {},
      [
        ['clientId', 'required'],
        ['label', 'required'],
      ],
    ],
    [
      'empty texts',
      { clientId: ' ', label: '' },
      [
        ['clientId', 'blank'],
        ['label', 'blank'],
      ],
    ],
    ['texts that are too long', { clientId: 'x'.repeat(256), label: 'l' }, [['clientId', 'max_length']]],
    [
      'what Postgres cannot store',
      { clientId: 'a\0b', label: 'half \ud800 a pair' },
      [
        ['clientId', 'invalid'],
        ['label', 'invalid'],
      ],
    ],
    [
      'an unknown scope',
      { clientId: 'c', label: 'l', scopes: ['autorisaties.lezen'] },
      [['scopes.0', 'invalid_choice']],
    ],
    [
      'scopes that are no list',
      { clientId: 'c', label: 'l', scopes: 'notificaties.publiceren' },
      [['scopes', 'not_a_list']],
    ],
    ['a misspelt field', { clientId: 'c', label: 'l', superuser: true }, [['superuser', 'unknown']]],
    ['a secret of 15 bytes', { clientId: 'c', label: 'l', secret: 'x'.repeat(15) }, [['secret', 'min_length']]],
    ['an empty secret', { clientId: 'c', label: 'l', secret: '' }, [['secret', 'blank']]],
    [
      'another type',
      { clientId: 1, label: null, isSuperuser: 'yes' },
      [
        ['clientId', 'invalid'],
        ['label', 'null'],
        ['isSuperuser', 'invalid'],
      ],
    ],
  ])('refuses %s', async (_what, body, expected) => {
    const { status, json } = await admin.post(path, body);
    expect(status).toBe(400);
    const found = json.invalidParams.map(({ name, code }) => [name, code]);
    expect(found.sort()).toEqual(expected.sort());
  });

  it('refuses a short secret also for an application that is there', async () => {
    const { json } = await admin.post(path, { clientId: newClientId(), label: 'Short' });
    const { status, json: refused } = await admin.patch(`${path}/${json.id}`, { secret: 'é'.repeat(7) });
    expect([status, refused.invalidParams]).toMatchObject([400, [{ name: 'secret', code: 'min_length' }]]);
    expect((await admin.patch(`${path}/${json.id}`, { secret: 'é'.repeat(8) })).status).toBe(200);
  });

  it('refuses a new client id by which a user of the console could be meant, and leaves one that is there', async () => {
    const clientId = `user:${randomUUID()}`;
    const refusal = { code: 'invalid', reason: expect.stringContaining('Must not begin with `user:`') };
    expect(await admin.post(path, { clientId: ` ${clientId}`, label: clientId })).toMatchObject({
      status: 400,
      json: { invalidParams: [{ name: 'clientId', ...refusal }] },
    });
    const planned = (entry: object) => admin.post('/admin/v1/configuration/plan', { applications: [entry] });
    expect(await planned({ clientId, secret: chosen })).toMatchObject({
      status: 400,
      json: { invalidParams: [{ name: 'applications.0.clientId', ...refusal }] },
    });

    const { json } = await admin.post(path, { clientId: newClientId(), label: clientId });
    await admin.api.app
      .get(Postgres)
      .dataSource.query('UPDATE application SET client_id = $1 WHERE id = $2', [clientId, json.id]);
    expect(await planned({ clientId, label: 'Another' })).toMatchObject({ status: 200, json: { changes: [{}] } });
    expect((await admin.patch(`${path}/${json.id}`, { label: 'Another' })).status).toBe(200);
  });

  it('does not let the client id be changed', async () => {
    const { json } = await admin.post(path, { clientId: newClientId(), label: 'Fixed' });
    const changed = await admin.patch(`${path}/${json.id}`, { clientId: newClientId() });
    expect(changed.json.invalidParams).toMatchObject([{ name: 'clientId', code: 'unknown' }]);
  });

  it('answers 404 for what is not there', async () => {
    for (const id of [randomUUID(), 'superuser']) {
      expect((await admin.get(`${path}/${id}`)).status).toBe(404);
      expect((await admin.patch(`${path}/${id}`, { label: 'l' })).status).toBe(404);
      expect((await admin.post(`${path}/${id}/rotate-secret`)).status).toBe(404);
      expect((await admin.delete(`${path}/${id}`)).status).toBe(404);
    }
  });
});

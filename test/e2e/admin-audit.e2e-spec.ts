import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { once } from 'node:events';
import { Agent, request, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import type { AdminApi } from '../support/admin-api.js';
import { AuditScene, type Entry } from '../support/audit-scene.js';
import { auditedConfiguration } from '../support/audited-configuration.js';
import { auditedDeliveries } from '../support/audited-deliveries.js';
import { auditedSubscriptions } from '../support/audited-subscriptions.js';
import { eventually } from '../support/eventually.js';
import { notificatie } from '../support/notificatie.js';
import { signToken } from '../support/tokens.js';

const scene = new AuditScene();
const { operator, secrets, sql, send, newest, lastId, everything, subscription } = scene;
let admin: AdminApi;

beforeAll(async () => {
  admin = await scene.open();
});
afterAll(() => scene.close());

/** One for each operation that changes something. */
const calls = { ...auditedConfiguration(scene), ...auditedSubscriptions(scene), ...auditedDeliveries(scene) };

/**
 * Requests of publishers and receivers about notifications are no change of the configuration. The others are posted
 * because there is much to say, and change nothing.
 */
const notNoted = new Set([
  'notificaties_create',
  'notificaties_put',
  // The ledger names who published it.
  'notification_publish',
  'fetching_acknowledge',
  'notification_dry_run',
  'replay_dry_run',
  'configuration_plan',
  'configuration_text_plan',
  'subscription_preview',
]);

interface Document {
  paths: Record<string, Record<string, { operationId: string }>>;
}

describe('every operation that changes something', () => {
  it('has a call in this test, unless it publishes', async () => {
    const nrc = JSON.parse((await admin.api.get('/openapi.json')).text) as Document;
    const operations = [admin.document as Document, nrc].flatMap(({ paths }) =>
      Object.values(paths).flatMap((item) =>
        Object.entries(item).flatMap(([method, { operationId }]) => (method === 'get' ? [] : [operationId])),
      ),
    );
    expect(operations.filter((id) => !notNoted.has(id)).toSorted()).toEqual(Object.keys(calls).toSorted());
  });

  it.each(Object.keys(calls))('%s leaves one entry: who, from where, what, before and after', async (id) => {
    const call = await calls[id]!();
    const before = await lastId();
    const { status, headers } = await send(call);
    expect(status).toBeLessThan(300);
    const entries = (await newest()).filter((entry) => Number(entry.id) > before);
    expect(entries).toEqual([
      {
        id: expect.any(String),
        at: expect.any(String),
        by: 'client',
        client: operator.clientId,
        via: null,
        address: '127.0.0.1',
        requestId: headers.get('x-request-id'),
        action: call.action,
        subject: call.subject,
        before: call.before,
        after: call.after,
        changedSecrets: call.changedSecrets ?? [],
      },
    ]);
  });

  it('happens, and is noted with the address, where its caller leaves before it is known what that may do', async () => {
    const { id } = await scene.channel();
    const [catalogue, server] = [admin.api.app.get(Catalogue), admin.api.app.getHttpServer() as Server];
    let isIn = false;
    const hasLeft = new Promise((resolve) =>
      server.once('connection', (socket: Socket) => socket.once('close', resolve)),
    );
    server.once('request', () => (isIn = true));
    const leaving = new AbortController();
    const look = catalogue.refresh.bind(catalogue);
    // The process looks by itself as well, each second.
    const refresh = vi.spyOn(catalogue, 'refresh').mockImplementation(async () => {
      if (isIn) {
        leaving.abort();
        await hasLeft;
      }
      return look();
    });
    try {
      const call = request(`${admin.api.origin}/admin/v1/channels/${id}`, {
        method: 'PATCH',
        headers: { authorization: `Bearer ${signToken(operator)}`, 'content-type': 'application/json' },
        agent: new Agent(), // a connection of its own
        signal: leaving.signal,
      });
      call.end(JSON.stringify({ filters: ['changed'] }));
      await expect(once(call, 'response')).rejects.toThrow('aborted');
      const entry = await eventually(
        async () => (await newest(`&subject=channel/${id}`)).find(({ action }) => action === 'channel.changed'),
        'the change to be noted',
      );
      expect(entry).toMatchObject({ client: operator.clientId, address: '127.0.0.1', after: { filters: ['changed'] } });
    } finally {
      refresh.mockRestore();
    }
  });

  it.each([
    'application_change',
    'channel_change',
    'kanaal_update',
    'kanaal_partial_update',
    'abonnement_update',
    'abonnement_partial_update',
    'subscription_change',
    'subscription_change_credentials',
    'retry_policy_replace',
    'subscription_retry_policy_replace',
    'alert_rules_replace',
  ])(
    '%s is answered as before when it is repeated, and as it changes nothing, leaves no entry and no new version',
    async (id) => {
      const call = await calls[id]!();
      const answerTo = async () => {
        const { status, json, headers } = await send(call);
        return { status, json, tag: headers.get('etag') };
      };
      const first = await answerTo();
      const [entry, version] = [await lastId(), await sql('SELECT version FROM catalogue')];
      expect(await answerTo()).toEqual(first);
      expect([await lastId(), await sql('SELECT version FROM catalogue')]).toEqual([entry, version]);
    },
  );

  it.each(Object.keys(calls))('%s does not happen where its entry cannot be written', async (id) => {
    const call = await calls[id]!();
    const before = await everything();
    await sql('ALTER TABLE audit_entry ADD CONSTRAINT full_disk CHECK (false) NOT VALID');
    try {
      expect((await send(call)).status).toBe(500);
    } finally {
      await sql('ALTER TABLE audit_entry DROP CONSTRAINT full_disk');
    }
    expect(await everything()).toEqual(before);
    expect((await send(call)).status).toBeLessThan(300);
  });

  it('shows no secret, and no hash of one', async () => {
    for (const prepare of Object.values(calls)) await send(await prepare());
    const [{ all }] = (await sql<{ all: string }>('SELECT string_agg(e::text, chr(10)) AS all FROM audit_entry e')) as [
      { all: string },
    ];
    const shown = JSON.stringify(await newest());
    const rows = await sql<{ secret: string }>('SELECT secret FROM application UNION SELECT auth FROM subscription');
    expect(rows.length).toBeGreaterThan(5);
    for (const secret of [...Object.values(secrets), ...rows.map((row) => row.secret)]) {
      if (secret === '') continue;
      const hash = await sql<{ hex: string }>("SELECT encode(sha256($1::bytea), 'hex') AS hex", [secret]);
      for (const text of [secret, hash[0]!.hex])
        expect([all.includes(text), shown.includes(text)]).toEqual([false, false]);
    }
  });
});

describe('an entry', () => {
  it('has the id that the request brought along, and the answer has it too', async () => {
    const call = await calls.subscription_pause!();
    const { headers } = await send(call, { 'x-request-id': 'trace-4711' });
    expect(headers.get('x-request-id')).toBe('trace-4711');
    expect((await newest(`&subject=${call.subject}`))[0]).toMatchObject({ requestId: 'trace-4711' });
  });

  it.each(['with space', 'é', 'x'.repeat(129), ''])('does not have the id %j, which is none', async (asked) => {
    const { headers } = await send(await calls.subscription_pause!(), {
      'x-request-id': Buffer.from(asked).toString('latin1'),
    });
    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('is not left by a request that reads, is refused, changes nothing, or publishes', async () => {
    const { id, channel: name } = await subscription('pause');
    const before = await lastId();
    await admin.get('/admin/v1/subscriptions');
    await admin.post(`/admin/v1/subscriptions/${id}/pause`);
    await admin.patch(`/admin/v1/subscriptions/${id}`, {});
    await admin.patch(`/admin/v1/subscriptions/${id}`, { ratePerSecond: -1 });
    await admin.api.post('/kanaal', { naam: name });
    await admin.api.patch(`/abonnement/${id}`, { auth: 'x' }, { token: null });
    const published = await admin.api.post('/notificaties', notificatie(name));
    expect(published.status).toBe(201);
    expect(published.headers.get('x-request-id')).toBeNull();
    expect(await lastId()).toBe(before);
  });
});

describe('the list of entries', () => {
  it('is filtered by client, action, subject and time, and goes on from page to page', async () => {
    const { id } = await subscription('pause', 'resume', 'pause', 'resume');
    const subject = `subscription/${id}`;
    const entries = await newest(`&subject=${subject}`);
    expect(entries.map(({ action }) => action)).toEqual(
      ['resumed', 'paused', 'resumed', 'paused', 'created'].map((done) => `subscription.${done}`),
    );
    expect(await newest(`&subject=${subject}&action=subscription.paused`)).toEqual([entries[1], entries[3]]);
    expect(await newest(`&subject=${subject}&client=nobody`)).toEqual([]);
    expect(await newest(`&subject=${subject}&to=1999-01-01T00:00:00Z`)).toEqual([]);
    expect(await newest(`&subject=${subject}&from=1970-01-01T00:00:00%2B02:00&to=9999-12-31T23:59:59-12:00`)).toEqual(
      entries,
    );

    const paged: Entry[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const more: string = cursor && `&cursor=${cursor}`;
      const { json } = await admin.get(`/admin/v1/audit?limit=2&subject=${subject}${more}`);
      paged.push(...(json.entries as Entry[]));
      cursor = json.nextCursor;
    }
    expect(paged).toEqual(entries);
  });

  it.each([
    ['client=', 'client', 'blank'],
    ['subject=%00', 'subject', 'invalid'],
    ['from=yesterday', 'from', 'invalid'],
    ['to=2026-02-30T00:00:00Z', 'to', 'invalid'],
    ['limit=501', 'limit', 'max_value'],
    ['cursor=AAAA', 'cursor', 'invalid'],
  ])('refuses ?%s', async (query, name, code) => {
    const { status, json } = await admin.get(`/admin/v1/audit?${query}`);
    expect(status).toBe(400);
    expect(json.invalidParams).toMatchObject([{ name, code }]);
  });
});

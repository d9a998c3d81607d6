import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createHash, randomUUID } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import { AdminApi } from '../support/admin-api.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';
import { lastPart } from '../support/last-part.js';
import { notificatie } from '../support/notificatie.js';
import { Receiver } from '../support/receiver.js';
import { signToken } from '../support/tokens.js';

interface Call {
  method: string;
  /** Of the whole server. */
  path: string;
  body?: object;
  /** Of the entry that it leaves. */
  action: string;
  subject: string;
  before: object | null;
  after: object | null;
  changedSecrets?: string[];
}

interface Entry {
  id: string;
  at: string;
  by: string;
  client: string | null;
  via: string | null;
  address: string | null;
  requestId: string | null;
  action: string;
  subject: string;
  before: object | null;
  after: object | null;
  changedSecrets: string[];
}

// Known to nobody but this test: none of them may be found in the log.
const secrets = { application: `secret-${randomUUID()}`, auth: `Bearer ${randomUUID()}`, other: randomUUID() };

const [admin, receiver] = await Promise.all([
  // Nothing is delivered: what the test puts into the ledger stays as it is.
  AdminApi.start({ ROLES: 'api', TEST_CALLBACK_AUTH: 'false' }),
  Receiver.start(),
]);
const operator = { clientId: `operator-${randomUUID()}`, secret: randomUUID() };
await admin.post('/admin/v1/applications', { ...operator, label: 'Operator', isSuperuser: true });
const token = signToken(operator);

interface Document {
  paths: Record<string, Record<string, { operationId: string }>>;
}
const nrc = JSON.parse((await admin.api.get('/openapi.json')).text) as Document;
const operations = [admin.document as Document, nrc].flatMap(({ paths }) =>
  Object.values(paths).flatMap((item) =>
    Object.entries(item).flatMap(([method, { operationId }]) => (method === 'get' ? [] : [operationId])),
  ),
);
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

const postgres = admin.api.app.get(Postgres);
const sql = <R>(text: string, values: unknown[] = []): Promise<R[]> => postgres.dataSource.query(text, values);

afterAll(() => Promise.all([admin.close(), receiver.stop()]));

const inNrc = (path: string) => `/api/v1${path}`;

async function application(): Promise<string> {
  const body = { clientId: randomUUID(), label: 'Before', secret: secrets.application };
  return (await admin.post('/admin/v1/applications', body)).json.id;
}

async function channel(): Promise<{ id: string; name: string }> {
  const name = randomUUID();
  const { json } = await admin.api.post('/kanaal', { naam: name, filters: ['kind'] });
  return { id: lastPart(json.url), name };
}

const abonnement = (naam: string, more: object = {}) => ({
  callbackUrl: receiver.url,
  auth: secrets.auth,
  kanalen: [{ naam, filters: {} }],
  ...more,
});

async function subscription(...commands: string[]): Promise<{ id: string; channel: string }> {
  const { name } = await channel();
  const { json } = await admin.api.post('/abonnement', abonnement(name));
  const id = lastPart(json.url);
  for (const command of commands) await admin.post(`/admin/v1/subscriptions/${id}/${command}`);
  return { id, channel: name };
}

async function delivery(state: 'waiting' | 'failed' | 'held', subscriptionId: string = randomUUID()): Promise<string> {
  const id = uuidv7();
  await insertNotifications(sql, [id]);
  const columns: Record<string, string> = state === 'held' ? { held_for: "'paused'" } : {};
  await insertDeliveries(sql, { notifications: [id], subscriptionIds: [subscriptionId], state, columns });
  return `${id}/${subscriptionId}`;
}

const asked = { subscriptions: [randomUUID()] };

async function replay(...commands: string[]): Promise<string> {
  const { json } = await admin.post('/admin/v1/replays', { selection: asked });
  for (const command of commands) await admin.post(`/admin/v1/replays/${json.id}/${command}`);
  return json.id;
}

async function replayCommand(command: string, done: string, before: string, after: string): Promise<Call> {
  const id = await (before === 'paused' ? replay('pause') : replay());
  return {
    method: 'POST',
    path: `/admin/v1/replays/${id}/${command}`,
    action: `replay.${done}`,
    subject: `replay/${id}`,
    before: { state: before },
    after: { state: after },
  };
}

const ending = (kind: 'cancel' | 'close', states: string[]): Promise<Call> =>
  Promise.resolve({
    method: 'POST',
    path: `/admin/v1/deliveries/${kind}`,
    body: { selection: asked, note: 'the receiver is gone' },
    action: 'replay.created',
    subject: expect.stringMatching(/^replay\//) as unknown as string,
    before: null,
    after: {
      kind,
      selection: asked,
      states,
      onlyMissed: true,
      ratePerSecond: null,
      startAt: null,
      stopAt: null,
      note: 'the receiver is gone',
      count: 0,
    },
  });

type PathOfKeys = (subscriptionId: string) => string;
const ofAdmin: PathOfKeys = (id) => `/admin/v1/subscriptions/${id}/signing-keys`;
const ofOwner: PathOfKeys = (id) => inNrc(`/abonnement/${id}/signing-keys`);
const signs = { scheme: 'v1', publicKey: null, endsAt: null };

async function signingKeyCreate(pathOf: PathOfKeys): Promise<Call> {
  const { id } = await subscription();
  return {
    method: 'POST',
    path: pathOf(id),
    body: {},
    action: 'subscription.signing-key-created',
    subject: `subscription/${id}`,
    before: {},
    after: expect.any(Object) as object,
  };
}

async function signingKeyRotate(pathOf: PathOfKeys): Promise<Call> {
  const { id } = await subscription();
  const { json } = await admin.post(ofAdmin(id), {});
  return {
    method: 'POST',
    path: `${pathOf(id)}/${json.id}/rotate`,
    body: {},
    action: 'subscription.signing-key-rotated',
    subject: `subscription/${id}`,
    before: { [`signing-key/${json.id}`]: signs },
    after: expect.objectContaining({
      [`signing-key/${json.id}`]: { ...signs, endsAt: expect.any(String) },
    }) as object,
  };
}

async function signingKeyEnd(pathOf: PathOfKeys): Promise<Call> {
  const { id } = await subscription();
  const { json } = await admin.post(ofAdmin(id), {});
  return {
    method: 'DELETE',
    path: `${pathOf(id)}/${json.id}`,
    action: 'subscription.signing-key-ended',
    subject: `subscription/${id}`,
    before: { [`signing-key/${json.id}`]: signs },
    after: {},
  };
}

const policy = { maxRetries: 3, backoffFactor: 2, baseFactor: 2, maxDelaySeconds: 100, jitter: 0 };

/** One for each operation that changes something. Its prerequisites are made before the call. */
const calls: Record<string, () => Promise<Call>> = {
  application_create: async () => {
    const clientId = randomUUID();
    return {
      method: 'POST',
      path: '/admin/v1/applications',
      body: { clientId, label: 'New', secret: secrets.application },
      action: 'application.created',
      subject: expect.stringMatching(/^application\//) as unknown as string,
      before: null,
      after: { clientId, label: 'New', scopes: [], isSuperuser: false, alertEmail: null },
      changedSecrets: ['secret'],
    };
  },
  application_change: async () => {
    const id = await application();
    return {
      method: 'PATCH',
      path: `/admin/v1/applications/${id}`,
      body: { label: 'After', secret: secrets.other },
      action: 'application.changed',
      subject: `application/${id}`,
      before: { label: 'Before' },
      after: { label: 'After' },
      changedSecrets: ['secret'],
    };
  },
  application_rotate_secret: async () => {
    const id = await application();
    return {
      method: 'POST',
      path: `/admin/v1/applications/${id}/rotate-secret`,
      action: 'application.secret-rotated',
      subject: `application/${id}`,
      before: {},
      after: {},
      changedSecrets: ['secret'],
    };
  },
  application_delete: async () => {
    const id = await application();
    return {
      method: 'DELETE',
      path: `/admin/v1/applications/${id}`,
      action: 'application.deleted',
      subject: `application/${id}`,
      before: expect.objectContaining({ label: 'Before' }) as object,
      after: null,
    };
  },
  channel_create: () => {
    const name = randomUUID();
    return Promise.resolve({
      method: 'POST',
      path: '/admin/v1/channels',
      body: { name, filters: ['kind'], maxAgeSeconds: 60 },
      action: 'channel.created',
      subject: expect.stringMatching(/^channel\//) as unknown as string,
      before: null,
      after: { name, documentationLink: '', filters: ['kind'], maxAge: 60 },
    });
  },
  channel_change: async () => {
    const { id } = await channel();
    return {
      method: 'PATCH',
      path: `/admin/v1/channels/${id}`,
      body: { maxAgeSeconds: 60, deduplication: { fields: ['resourceUrl'], withinSeconds: 5 }, bodyRetentionDays: 3 },
      action: 'channel.changed',
      subject: `channel/${id}`,
      before: { maxAge: null, deduplicateBy: null, deduplicateWithin: 604_800, bodyRetentionDays: null },
      after: { maxAge: 60, deduplicateBy: ['resourceUrl'], deduplicateWithin: 5, bodyRetentionDays: 3 },
    };
  },
  channel_delete: async () => {
    const { id, name } = await channel();
    return {
      method: 'DELETE',
      path: `/admin/v1/channels/${id}`,
      action: 'channel.deleted',
      subject: `channel/${id}`,
      before: expect.objectContaining({ name, filters: ['kind'], bodyRetentionDays: null }) as object,
      after: null,
    };
  },
  kanaal_create: async () => {
    const naam = randomUUID();
    return {
      method: 'POST',
      path: inNrc('/kanaal'),
      body: { naam, filters: ['kind'] },
      action: 'channel.created',
      subject: expect.stringMatching(/^channel\//) as unknown as string,
      before: null,
      after: { name: naam, documentationLink: '', filters: ['kind'] },
    };
  },
  kanaal_update: async () => {
    const { id, name } = await channel();
    return {
      method: 'PUT',
      path: inNrc(`/kanaal/${id}`),
      body: { naam: name, documentatieLink: 'https://docs.example.org', filters: ['kind'] },
      action: 'channel.changed',
      subject: `channel/${id}`,
      before: { documentationLink: '' },
      after: { documentationLink: 'https://docs.example.org' },
    };
  },
  kanaal_partial_update: async () => {
    const { id } = await channel();
    return {
      method: 'PATCH',
      path: inNrc(`/kanaal/${id}`),
      body: { filters: ['kind', 'more'] },
      action: 'channel.changed',
      subject: `channel/${id}`,
      before: { filters: ['kind'] },
      after: { filters: ['kind', 'more'] },
    };
  },
  abonnement_create: async () => {
    const { name } = await channel();
    return {
      method: 'POST',
      path: inNrc('/abonnement'),
      body: abonnement(name),
      action: 'subscription.created',
      subject: expect.stringMatching(/^subscription\//) as unknown as string,
      before: null,
      after: {
        ownerClientId: operator.clientId,
        callbackUrl: receiver.url,
        channels: [{ channel: name, filters: {} }],
        deliveryGuarantee: null,
        timeoutSeconds: null,
        maxConcurrency: null,
        ratePerSecond: null,
        ordering: 'none',
        alertEmail: null,
        disabledAt: null,
        pausedAt: null,
      },
      changedSecrets: ['auth'],
    };
  },
  abonnement_update: async () => {
    const { id, channel: name } = await subscription();
    return {
      method: 'PUT',
      path: inNrc(`/abonnement/${id}`),
      body: abonnement(name, { callbackUrl: `${receiver.url}/other`, auth: `Bearer ${secrets.other}` }),
      action: 'subscription.changed',
      subject: `subscription/${id}`,
      before: { callbackUrl: receiver.url },
      after: { callbackUrl: `${receiver.url}/other` },
      changedSecrets: ['auth'],
    };
  },
  abonnement_partial_update: async () => {
    const { id } = await subscription();
    return {
      method: 'PATCH',
      path: inNrc(`/abonnement/${id}`),
      body: { deliveryGuarantee: 'at-most-once', auth: secrets.auth },
      action: 'subscription.changed',
      subject: `subscription/${id}`,
      before: { deliveryGuarantee: null },
      after: { deliveryGuarantee: 'at-most-once' },
    };
  },
  abonnement_delete: async () => {
    const { id } = await subscription();
    return {
      method: 'DELETE',
      path: inNrc(`/abonnement/${id}`),
      action: 'subscription.deleted',
      subject: `subscription/${id}`,
      before: expect.objectContaining({ callbackUrl: receiver.url }) as object,
      after: null,
    };
  },
  subscription_create: async () => {
    const { name } = await channel();
    const authorization = { kind: 'verbatim', auth: secrets.auth };
    return {
      method: 'POST',
      path: '/admin/v1/subscriptions',
      body: {
        ownerClientId: operator.clientId,
        callbackUrl: receiver.url,
        channels: [{ channel: name }],
        credentials: { authorization },
      },
      action: 'subscription.created',
      subject: expect.stringMatching(/^subscription\//) as unknown as string,
      before: null,
      after: expect.objectContaining({ ownerClientId: operator.clientId, callbackUrl: receiver.url }) as object,
      changedSecrets: ['auth'],
    };
  },
  subscription_delete: async () => {
    const { id } = await subscription();
    return {
      method: 'DELETE',
      path: `/admin/v1/subscriptions/${id}`,
      action: 'subscription.deleted',
      subject: `subscription/${id}`,
      before: expect.objectContaining({ callbackUrl: receiver.url }) as object,
      after: null,
    };
  },
  subscription_test: async () => {
    const { id } = await subscription();
    return {
      method: 'POST',
      path: `/admin/v1/subscriptions/${id}/test`,
      action: 'subscription.tested',
      subject: `subscription/${id}`,
      before: {},
      after: {},
    };
  },
  subscription_change: async () => {
    const { id } = await subscription();
    return {
      method: 'PATCH',
      path: `/admin/v1/subscriptions/${id}`,
      body: { ratePerSecond: 5, ordering: 'per-object' },
      action: 'subscription.changed',
      subject: `subscription/${id}`,
      before: { ratePerSecond: null, ordering: 'none' },
      after: { ratePerSecond: 5, ordering: 'per-object' },
    };
  },
  subscription_change_credentials: async () => {
    const { id } = await subscription();
    return {
      method: 'PATCH',
      path: `/admin/v1/subscriptions/${id}/credentials`,
      body: { headers: { 'x-api-key': secrets.other } },
      action: 'subscription.credentials-changed',
      subject: `subscription/${id}`,
      before: {},
      after: {},
      changedSecrets: ['credentials'],
    };
  },
  signing_key_create: () => signingKeyCreate(ofAdmin),
  signing_key_rotate: () => signingKeyRotate(ofAdmin),
  signing_key_end: () => signingKeyEnd(ofAdmin),
  signingkey_create: () => signingKeyCreate(ofOwner),
  signingkey_rotate: () => signingKeyRotate(ofOwner),
  signingkey_delete: () => signingKeyEnd(ofOwner),
  subscription_enable: async () => {
    const { id } = await subscription();
    await admin.api.app.get(SubscriptionsService).disable(id);
    return {
      method: 'POST',
      path: `/admin/v1/subscriptions/${id}/enable`,
      action: 'subscription.enabled',
      subject: `subscription/${id}`,
      before: { disabledAt: expect.any(String) },
      after: { disabledAt: null },
    };
  },
  subscription_pause: async () => {
    const { id } = await subscription();
    return {
      method: 'POST',
      path: `/admin/v1/subscriptions/${id}/pause`,
      action: 'subscription.paused',
      subject: `subscription/${id}`,
      before: { pausedAt: null },
      after: { pausedAt: expect.any(String) },
    };
  },
  subscription_resume: async () => {
    const { id } = await subscription('pause');
    return {
      method: 'POST',
      path: `/admin/v1/subscriptions/${id}/resume`,
      action: 'subscription.resumed',
      subject: `subscription/${id}`,
      before: { pausedAt: expect.any(String) },
      after: { pausedAt: null },
    };
  },
  subscription_drop_held: async () => {
    const { id } = await subscription('pause');
    const held = await delivery('held', id);
    return {
      method: 'POST',
      path: `/admin/v1/subscriptions/${id}/drop-held`,
      action: 'subscription.held-dropped',
      subject: `subscription/${id}`,
      before: {},
      after: { upToNotification: held.split('/')[0] },
    };
  },
  subscription_retry_policy_replace: async () => {
    const { id } = await subscription();
    return {
      method: 'PUT',
      path: `/admin/v1/subscriptions/${id}/retry-policy`,
      body: { maxRetries: 1 },
      action: 'subscription.retry-policy-changed',
      subject: `subscription/${id}`,
      before: {},
      after: { maxRetries: 1 },
    };
  },
  subscription_retry_policy_delete: async () => {
    const { id } = await subscription();
    await admin.put(`/admin/v1/subscriptions/${id}/retry-policy`, { jitter: 0.5 });
    return {
      method: 'DELETE',
      path: `/admin/v1/subscriptions/${id}/retry-policy`,
      action: 'subscription.retry-policy-changed',
      subject: `subscription/${id}`,
      before: { jitter: 0.5 },
      after: {},
    };
  },
  configuration_apply: async () => {
    const { id, name } = await channel();
    return {
      method: 'POST',
      path: '/admin/v1/configuration/apply',
      body: { channels: [{ name, filters: ['kind', 'more'] }] },
      action: 'channel.changed',
      subject: `channel/${id}`,
      before: { filters: ['kind'] },
      after: { filters: ['kind', 'more'] },
    };
  },
  configuration_text_apply: async () => {
    const { id, name } = await channel();
    return {
      method: 'POST',
      path: '/admin/v1/configuration/text/apply',
      body: { text: `channels: [{ name: ${name}, maxAgeSeconds: 60 }]` },
      action: 'channel.changed',
      subject: `channel/${id}`,
      before: { maxAge: null },
      after: { maxAge: 60 },
    };
  },
  retry_policy_replace: async () => {
    await admin.put('/admin/v1/retry-policy', policy);
    return {
      method: 'PUT',
      path: '/admin/v1/retry-policy',
      body: { ...policy, maxRetries: 4 },
      action: 'retry-policy.changed',
      subject: 'retry-policy',
      before: { maxRetries: 3 },
      after: { maxRetries: 4 },
    };
  },
  alert_rules_replace: async () => {
    await admin.put('/admin/v1/alert-rules', {});
    const more = (count: number) => ({ deadLetters: { isEnabled: true, count } });
    return {
      method: 'PUT',
      path: '/admin/v1/alert-rules',
      body: more(2),
      action: 'alert-rules.changed',
      subject: 'alert-rules',
      before: more(1),
      after: more(2),
    };
  },
  sign_in_ticket_create: () =>
    Promise.resolve({
      method: 'POST',
      path: '/admin/v1/sign-in-tickets',
      action: 'sign-in-ticket.made',
      subject: 'sign-in-ticket',
      before: null,
      after: { expiresAt: expect.any(String) },
    }),
  alert_test: () =>
    Promise.resolve({
      method: 'POST',
      path: '/admin/v1/alerts/test',
      action: 'alerts.tested',
      subject: 'alerts',
      before: {},
      after: {},
    }),
  endpoint_reset: async () => {
    const address = `https://${randomUUID()}.example.org`;
    await sql("INSERT INTO endpoint (address, reason, failures, next_probe_at) VALUES ($1, 'HTTP 503', 5, now())", [
      address,
    ]);
    return {
      method: 'POST',
      path: '/admin/v1/endpoints/reset',
      body: { address },
      action: 'endpoint.reset',
      subject: `endpoint/${address}`,
      before: { openedAt: expect.any(String), reason: 'HTTP 503', failures: 5 },
      after: null,
    };
  },
  delivery_retry: async () => {
    const id = await delivery('failed', (await subscription()).id);
    return {
      method: 'POST',
      path: `/admin/v1/deliveries/${id}/retry`,
      action: 'delivery.retried',
      subject: `delivery/${id}`,
      before: { state: 'failed', generation: 1 },
      after: { state: 'waiting', generation: 2 },
    };
  },
  replay_create: () =>
    Promise.resolve({
      method: 'POST',
      path: '/admin/v1/replays',
      body: { selection: asked, ratePerSecond: 5, startAt: '2999-01-01T00:00:00Z' },
      action: 'replay.created',
      subject: expect.stringMatching(/^replay\//) as unknown as string,
      before: null,
      after: {
        kind: 'replay',
        selection: asked,
        states: ['failed', 'expired'],
        onlyMissed: true,
        ratePerSecond: 5,
        startAt: '2999-01-01T00:00:00.000Z',
        stopAt: null,
        note: null,
        count: 0,
      },
    }),
  replay_pause: () => replayCommand('pause', 'paused', 'scheduled', 'paused'),
  replay_resume: () => replayCommand('resume', 'resumed', 'paused', 'scheduled'),
  replay_cancel: () => replayCommand('cancel', 'cancelled', 'scheduled', 'cancelled'),
  deliveries_cancel: () => ending('cancel', ['queued', 'waiting', 'held', 'sending']),
  deliveries_close: () => ending('close', ['failed', 'expired', 'unknown']),
  delivery_cancel: async () => {
    const id = await delivery('waiting');
    return {
      method: 'POST',
      path: `/admin/v1/deliveries/${id}/cancel`,
      action: 'delivery.cancelled',
      subject: `delivery/${id}`,
      before: { state: 'waiting', generation: 1 },
      after: { state: 'cancelled', generation: 2 },
    };
  },
  erasure_create: async () => {
    const mainObject = `https://example.org/${randomUUID()}`;
    return {
      method: 'POST',
      path: '/admin/v1/erasures',
      body: { mainObject },
      action: 'erasure.requested',
      subject: expect.stringMatching(/^erasure\//) as unknown as string,
      before: null,
      after: { notification: null, mainObjectHash: createHash('sha256').update(mainObject).digest('hex') },
    };
  },
  erasure_confirm: async () => {
    const { json } = await admin.post('/admin/v1/erasures', { mainObject: 'https://example.org/1' });
    await sql(`UPDATE erasure SET state = 'counted', found = 3 WHERE id = $1`, [json.id]);
    return {
      method: 'POST',
      path: `/admin/v1/erasures/${json.id}/confirm`,
      body: { confirm: 3 },
      action: 'erasure.confirmed',
      subject: `erasure/${json.id}`,
      before: { state: 'counted' },
      after: { state: 'erasing', found: 3 },
    };
  },
};

const send = ({ method, path, body }: Call, headers: Record<string, string> = {}) =>
  admin.api.call(method, admin.api.origin + path, { body, token, headers });

async function newest(query = ''): Promise<Entry[]> {
  const { json } = await admin.get(`/admin/v1/audit?limit=500${query}`);
  return json.entries as Entry[];
}

const lastId = async (): Promise<number> => Number((await newest())[0]?.id ?? 0);

describe('every operation that changes something', () => {
  it('has a call in this test, unless it publishes', () => {
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

  it.each([
    'application_change',
    'channel_change',
    'kanaal_update',
    'kanaal_partial_update',
    'abonnement_update',
    'abonnement_partial_update',
    'subscription_change',
    'subscription_change_credentials',
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
  beforeAll(async () => {
    await subscription();
  });

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

/** Every row of every table but those of the log and of what passes by itself. */
async function everything(): Promise<string[]> {
  const tables = await sql<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition
       AND relnamespace = 'public'::regnamespace AND relname <> ALL ($1) ORDER BY 1`,
    [['audit_entry', 'process', 'lane_progress', 'alert', 'alert_round', 'activity']],
  );
  const rows = await Promise.all(
    tables.map(({ name }) => sql<{ row: string }>(`SELECT '${name}: ' || t::text AS row FROM ${name} t ORDER BY 1`)),
  );
  return rows.flat().map(({ row }) => row);
}

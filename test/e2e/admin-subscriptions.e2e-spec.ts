import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { AdminApi } from '../support/admin-api.js';
import { signToken } from '../support/tokens.js';
import { eventually } from '../support/eventually.js';
import { answer, hang, protectedReceiver, Receiver } from '../support/receiver.js';
import { insertDeliveries } from '../support/insert-deliveries.js';

const path = '/admin/v1/subscriptions';
const actions = ['enable', 'pause', 'resume', 'drop-held'];

let admin: AdminApi;
let receiver: Receiver;

beforeAll(async () => {
  [admin, receiver] = await Promise.all([
    AdminApi.start({
      AT_LEAST_ONCE_SENDING_CUSTOMERS: 'superuser,listed',
      NOTIFICATION_REQUESTS_TIMEOUT: '0.5',
    }),
    Receiver.start(),
  ]);
});
afterEach(() => receiver.always(protectedReceiver));
afterAll(() => Promise.all([admin.close(), receiver.stop()]));

interface Subscribed {
  id: string;
  naam: string;
}

async function subscribe(more: object = {}, token?: string): Promise<Subscribed> {
  const naam = randomUUID();
  await admin.api.post('/kanaal', { naam, filters: ['kind'] });
  const kanalen = [{ naam, filters: { kind: 'permit' } }];
  const body = { callbackUrl: receiver.url, auth: 'Bearer secret-of-the-receiver', kanalen, ...more };
  const { json } = await admin.api.post('/abonnement', body, { token });
  return { id: json.url.split('/').at(-1)!, naam };
}

async function publish({ naam: kanaal }: Subscribed): Promise<string> {
  const [hoofdObject, resourceUrl] = ['http://openzaak:8000/zaken/1', 'http://openzaak:8000/statussen/1'];
  const rest = { resource: 'status', actie: 'create', aanmaakdatum: '2025-01-01T10:00:00Z' };
  const { headers } = await admin.api.post('/notificaties', { kanaal, hoofdObject, resourceUrl, ...rest });
  return headers.get('notification-id')!;
}

const deliveriesOf = async (id: string) => (await admin.get(`/admin/v1/deliveries?notification=${id}`)).json.deliveries;
const becomes = (id: string, state: string) =>
  eventually(async () => (await deliveriesOf(id))[0]?.state === state, `${id} to be ${state}`);
const receivedOf = (id: string) => receiver.notifications.filter(({ headers }) => headers['webhook-id'] === id);

async function newOwner(clientId: string): Promise<string> {
  const scopes = ['notificaties.consumeren'];
  const { json } = await admin.post('/admin/v1/applications', { clientId, label: clientId, scopes });
  return signToken({ clientId, secret: json.secret });
}

describe('subscriptions, as an operator sees them', () => {
  it('show everything but the secret of the receiver', async () => {
    const { id, naam } = await subscribe();
    const { json, text } = await admin.get(`${path}/${id}`);
    expect(json).toEqual({
      id,
      ownerClientId: 'superuser',
      callbackUrl: receiver.url,
      channels: [{ channel: naam, filters: { kind: 'permit' } }],
      deliveryGuarantee: null,
      effectiveGuarantee: 'at-least-once',
      timeoutSeconds: null,
      maxConcurrency: null,
      ratePerSecond: null,
      ordering: 'none',
      alertEmail: null,
      credentials: {
        kind: 'verbatim',
        clientId: null,
        tokenUrl: null,
        scope: null,
        tls: null,
        tokenTls: null,
        headers: [],
        unreadable: null,
      },
      disabledAt: null,
      pausedAt: null,
      held: { count: 0, byReason: {}, oldestAt: null, isDropping: false },
    });
    expect(text).not.toContain('secret-of-the-receiver');
    const list = await admin.get(path);
    const { held: _, ...listed } = json;
    expect(list.json.subscriptions).toContainEqual(listed);
    expect(list.text).not.toContain('secret-of-the-receiver');
  });

  it('are gone when they were deleted', async () => {
    const { id } = await subscribe();
    await admin.api.delete(`/abonnement/${id}`);
    expect((await admin.get(`${path}/${id}`)).status).toBe(404);
    expect((await admin.patch(`${path}/${id}`, { deliveryGuarantee: null })).status).toBe(404);
    for (const action of actions) expect((await admin.post(`${path}/${id}/${action}`)).status).toBe(404);
    expect((await admin.get(path)).json.subscriptions.map((subscription) => subscription.id)).not.toContain(id);
  });

  it('are for superusers only', async () => {
    const { id } = await subscribe();
    const token = await admin.api.tokenWith('notificaties.consumeren');
    expect((await admin.get(path, { token })).status).toBe(403);
    expect((await admin.patch(`${path}/${id}`, {}, { token })).status).toBe(403);
    for (const action of actions)
      expect((await admin.post(`${path}/${id}/${action}`, undefined, { token })).status).toBe(403);
  });

  it.each<[object, string]>([
    [{ deliveryGuarantee: 'exactly-once' }, 'deliveryGuarantee invalid_choice'],
    [{ deliveryGuarantee: 1 }, 'deliveryGuarantee invalid_choice'],
    [{ callbackUrl: 'http://elsewhere/' }, 'callbackUrl unknown'],
    [{ pausedAt: '2026-11-01T10:00:00Z' }, 'pausedAt unknown'],
    [{ timeoutSeconds: 0.05 }, 'timeoutSeconds min_value'],
    [{ timeoutSeconds: 301 }, 'timeoutSeconds max_value'],
    [{ timeoutSeconds: 60 }, 'timeoutSeconds exceeds-lease'],
    [{ timeoutSeconds: '5' }, 'timeoutSeconds invalid'],
    [{ maxConcurrency: 0 }, 'maxConcurrency min_value'],
    [{ maxConcurrency: 10_001 }, 'maxConcurrency max_value'],
    [{ maxConcurrency: 1.5 }, 'maxConcurrency invalid'],
    [{ ratePerSecond: 0 }, 'ratePerSecond min_value'],
    [{ ratePerSecond: -1 }, 'ratePerSecond min_value'],
    [{ ratePerSecond: 100_001 }, 'ratePerSecond max_value'],
    [{ ordering: 'per-channel' }, 'ordering invalid_choice'],
    [{ ordering: null }, 'ordering null'],
  ])('refuse %j', async (changes, refusal) => {
    const { id } = await subscribe();
    const { status, json } = await admin.patch(`${path}/${id}`, changes);
    expect(status).toBe(400);
    expect(json.invalidParams.map(({ name, code }) => `${name} ${code}`)).toEqual([refusal]);
  });
});

describe('the settings of a subscription', () => {
  const settings = {
    timeoutSeconds: 2.5,
    maxConcurrency: 3,
    ratePerSecond: 0.5,
    ordering: 'per-object',
    alertEmail: 'a@b.nl',
  };
  const none = { timeoutSeconds: null, maxConcurrency: null, ratePerSecond: null, ordering: 'none' };

  it('are set together, and one that is left out stays as it is', async () => {
    const { id } = await subscribe();
    const before = admin.api.app.get(Catalogue).version;
    const all = { ...settings, deliveryGuarantee: 'at-most-once' };
    expect((await admin.patch(`${path}/${id}`, all)).json).toMatchObject(all);
    expect(admin.api.app.get(Catalogue).version).toBe(before + 1);
    await admin.patch(`${path}/${id}`, {});
    await admin.patch(`${path}/${id}`, { maxConcurrency: 10_000 });
    expect((await admin.get(`${path}/${id}`)).json).toMatchObject({ ...all, maxConcurrency: 10_000 });
    expect((await admin.patch(`${path}/${id}`, none)).json).toMatchObject({
      ...none,
      deliveryGuarantee: 'at-most-once',
    });
  });

  it('change nothing where one of them is refused', async () => {
    const { id } = await subscribe();
    expect((await admin.patch(`${path}/${id}`, { maxConcurrency: 3, ratePerSecond: 0 })).status).toBe(400);
    expect((await admin.patch(`${path}/${id}`, { maxConcurrency: 3, timeoutSeconds: 60 })).status).toBe(400);
    expect((await admin.get(`${path}/${id}`)).json).toMatchObject(none);
  });

  it('are neither shown nor reset by the Notificaties API', async () => {
    const { id, naam } = await subscribe();
    const shown = Object.keys((await admin.api.get(`/abonnement/${id}`)).json);
    await admin.patch(`${path}/${id}`, settings);
    await admin.post(`${path}/${id}/pause`);
    const body = {
      callbackUrl: receiver.url,
      auth: 'Bearer another',
      kanalen: [{ naam, filters: { kind: 'permit' } }],
    };
    for (const answer of [
      await admin.api.put(`/abonnement/${id}`, body),
      await admin.api.patch(`/abonnement/${id}`, { auth: 'Bearer of-the-receiver' }),
      // As any other field that is not of the standard: ignored.
      await admin.api.patch(`/abonnement/${id}`, { ...none, pausedAt: null }),
      await admin.api.get(`/abonnement/${id}`),
    ])
      expect([answer.status, Object.keys(answer.json)]).toEqual([200, shown]);
    expect((await admin.get(`${path}/${id}`)).json).toMatchObject({ ...settings, pausedAt: expect.any(String) });
  });

  it('give a call the time that the subscription allows, whatever other calls have', async () => {
    // One of its own: the calls that other tests let time out leave theirs room for fewer calls than these two.
    const own = await Receiver.start();
    const callbackUrl = own.url;
    const [patient, hasty] = [await subscribe({ callbackUrl }), await subscribe({ callbackUrl })];
    await admin.patch(`${path}/${patient.id}`, { timeoutSeconds: 20 });
    await admin.patch(`${path}/${hasty.id}`, { timeoutSeconds: 0.2 });
    const held: (() => void)[] = [];
    own.always((_request, response) => void held.push(() => response.writeHead(204).end()));
    const late = await publish(patient);
    await eventually(() => held.length > 0, 'the call that waits');
    const ended = await publish(hasty);
    await becomes(ended, 'waiting');
    expect((await deliveriesOf(ended))[0]).toMatchObject({ lastError: expect.stringContaining('0.2 s') });
    expect((await deliveriesOf(late))[0]).toMatchObject({ failureCount: 0 });
    for (const release of held) release();
    await becomes(late, 'delivered');
    expect((await deliveriesOf(late))[0]).toMatchObject({ attemptCount: 1 });
    await own.stop();
  });
});

describe('a paused subscription', () => {
  const sql = <R>(text: string, values: unknown[]): Promise<R[]> =>
    admin.api.app.get(Postgres).dataSource.query(text, values);
  const reported = (id: string) =>
    admin.api.logged.filter(({ subscriptionId }) => subscriptionId === id).map(({ event }) => event);

  it('is paused and resumed by an operator, as often as they like', async () => {
    const { id } = await subscribe();
    const [paused, again] = [await admin.post(`${path}/${id}/pause`), await admin.post(`${path}/${id}/pause`)];
    expect(paused.json).toMatchObject({ id, pausedAt: expect.any(String) });
    expect(again.json).toEqual(paused.json);
    expect((await admin.get(`${path}/${id}`)).json).toMatchObject(paused.json);
    const [resumed, twice] = [await admin.post(`${path}/${id}/resume`), await admin.post(`${path}/${id}/resume`)];
    expect(resumed.json).toEqual({ ...paused.json, pausedAt: null });
    expect(twice.json).toEqual(resumed.json);
    expect(reported(id)).toEqual(['subscription.paused', 'subscription.resumed']);
  });

  it('drops what it holds when an operator says so, and only then', async () => {
    const subscribed = await subscribe();
    const { id } = subscribed;
    expect((await admin.post(`${path}/${id}/drop-held`)).json.code).toBe('subscription-not-paused');
    receiver.always(answer(503));
    const [dropped, kept] = [await publish(subscribed), await publish(subscribed)];
    await Promise.all([becomes(dropped, 'waiting'), becomes(kept, 'waiting')]);
    await admin.post(`${path}/${id}/pause`);
    const hold = (notificationId: string) =>
      sql(`UPDATE delivery SET state = 'held', held_for = 'paused', next_at = NULL WHERE notification_id = $1`, [
        notificationId,
      ]);
    await hold(dropped);
    expect((await admin.get(`${path}/${id}`)).json.held).toMatchObject({ count: 1, byReason: { paused: 1 } });
    const answered = await admin.post(`${path}/${id}/drop-held`);
    expect(answered).toMatchObject({ status: 202, json: { id, held: { isDropping: true } } });
    await becomes(dropped, 'cancelled');
    await eventually(async () => (await admin.post(`${path}/${id}/resume`)).status === 200, 'it to be resumed');
    expect((await deliveriesOf(kept))[0]).toMatchObject({ state: 'waiting' });
  });

  it('is not resumed while it drops', async () => {
    const { id } = await subscribe();
    await admin.post(`${path}/${id}/pause`);
    // What is locked is dropped later.
    await admin.api.app.get(Postgres).dataSource.transaction(async (manager) => {
      const [newest] = await insertDeliveries(sql, {
        notifications: 1,
        subscriptionIds: [id],
        state: 'held',
        columns: { held_for: "'paused'" },
      });
      await manager.query('SELECT FROM delivery WHERE notification_id = $1 FOR UPDATE', [newest]);
      await admin.post(`${path}/${id}/drop-held`);
      const { status, json } = await admin.post(`${path}/${id}/resume`);
      expect([status, json.code]).toEqual([409, 'subscription-dropping']);
    });
    await eventually(async () => (await admin.post(`${path}/${id}/resume`)).status === 200, 'it to be resumed');
  });
});

describe('the guarantee of a subscription', () => {
  it('is its owner’s unless it has one of its own, set by either API', async () => {
    const [listed, other] = [await newOwner('listed'), await newOwner('not-listed')];
    const guarantees = async ({ id }: Subscribed) => {
      const { json } = await admin.get(`${path}/${id}`);
      return [json.deliveryGuarantee, json.effectiveGuarantee];
    };
    expect(await guarantees(await subscribe({}, listed))).toEqual([null, 'at-least-once']);
    const subscribed = await subscribe({}, other);
    expect(await guarantees(subscribed)).toEqual([null, 'at-most-once']);
    await admin.patch(`${path}/${subscribed.id}`, { deliveryGuarantee: 'at-least-once' });
    expect(await guarantees(subscribed)).toEqual(['at-least-once', 'at-least-once']);
    await admin.patch(`${path}/${subscribed.id}`, {});
    expect(await guarantees(subscribed)).toEqual(['at-least-once', 'at-least-once']);
    await admin.patch(`${path}/${subscribed.id}`, { deliveryGuarantee: null });
    expect(await guarantees(subscribed)).toEqual([null, 'at-most-once']);
    const own = await subscribe({ deliveryGuarantee: 'at-most-once' }, listed);
    expect(await guarantees(own)).toEqual(['at-most-once', 'at-most-once']);
  });

  it('decides how a delivery ends whose call is not answered', async () => {
    const [once, often] = [await subscribe({ deliveryGuarantee: 'at-most-once' }), await subscribe()];
    receiver.always(hang);
    const [unknown, waiting] = [await publish(once), await publish(often)];
    await becomes(unknown, 'unknown');
    await becomes(waiting, 'waiting');
    expect(receivedOf(unknown)).toHaveLength(1);
    const { text } = await admin.api.get(`${admin.api.origin}/metrics`, { token: null });
    expect(text).toMatch(/heraut_deliveries_unknown_total [1-9]/);
    expect(text).toMatch(/heraut_delivery_attempts_total\{guarantee="at-most-once",outcome="unknown"\} [1-9]/);
  });

  it('is in an abonnement only where it was set, and a PUT without it removes it', async () => {
    const { id, naam } = await subscribe();
    const abonnement = async () => (await admin.api.get(`/abonnement/${id}`)).json;
    expect(await abonnement()).not.toHaveProperty('deliveryGuarantee');
    await admin.api.patch(`/abonnement/${id}`, { deliveryGuarantee: 'at-most-once' });
    expect(await abonnement()).toMatchObject({ deliveryGuarantee: 'at-most-once', kanalen: [{ naam }] });
    await admin.api.patch(`/abonnement/${id}`, { deliveryGuarantee: null });
    expect(await abonnement()).not.toHaveProperty('deliveryGuarantee');
    await admin.api.patch(`/abonnement/${id}`, { delivery_guarantee: 'at-least-once' });
    await admin.api.put(`/abonnement/${id}`, { callbackUrl: receiver.url, auth: 'Bearer secret-of-the-receiver' });
    expect(await abonnement()).not.toHaveProperty('deliveryGuarantee');
  });

  it.each(['exactly-once', '', 1, []])('is refused as %j', async (deliveryGuarantee) => {
    const body = { callbackUrl: receiver.url, auth: 'Bearer x', deliveryGuarantee };
    const { status, json } = await admin.api.post('/abonnement', body);
    expect([status, json.invalidParams.map(({ name }) => name)]).toEqual([400, ['deliveryGuarantee']]);
  });
});

describe('a receiver that says it is gone', () => {
  /** Answered 410 to one notification; another was waiting. */
  async function goneReceiver(): Promise<Subscribed & { refused: string; waiting: string }> {
    const subscribed = await subscribe();
    receiver.always(answer(503));
    const waiting = await publish(subscribed);
    await becomes(waiting, 'waiting');
    receiver.always(answer(410));
    const refused = await publish(subscribed);
    await becomes(refused, 'failed');
    await eventually(async () => (await admin.get(`${path}/${subscribed.id}`)).json.disabledAt, 'it to be disabled');
    receiver.always(protectedReceiver);
    return { ...subscribed, refused, waiting };
  }

  it('gets no more calls, and its waiting deliveries have failed', async () => {
    const gone = await goneReceiver();
    await becomes(gone.waiting, 'failed');
    const published = await publish(gone);
    expect(await deliveriesOf(published)).toEqual([]);
    await admin.post(`/admin/v1/deliveries/${gone.refused}/${gone.id}/retry`);
    await becomes(gone.refused, 'failed');
    expect(receivedOf(gone.refused)).toHaveLength(1);
  });

  it('is disabled once, however many of its calls are answered like that', async () => {
    const subscribed = await subscribe();
    receiver.always(answer(410));
    const ids = await Promise.all(Array.from({ length: 20 }, () => publish(subscribed)));
    await Promise.all(
      ids.map((id) => eventually(async () => (await deliveriesOf(id)).every(({ state }) => state === 'failed'))),
    );
    const { json } = await admin.get(`${path}/${subscribed.id}`);
    expect(json.disabledAt).not.toBeNull();
    const reported = admin.api.logged.filter(({ subscriptionId }) => subscriptionId === subscribed.id);
    expect(reported.filter(({ event }) => event === 'subscription.disabled')).toHaveLength(1);
    receiver.always(protectedReceiver);
  });

  it('gets notifications again when an operator enables it, and then the failed deliveries can be retried', async () => {
    const gone = await goneReceiver();
    expect((await admin.post(`${path}/${gone.id}/enable`)).json).toMatchObject({ id: gone.id, disabledAt: null });
    expect((await admin.post(`${path}/${gone.id}/enable`)).status).toBe(200);
    const enabled = admin.api.logged.filter(({ event }) => event === 'subscription.enabled');
    expect(enabled.filter(({ subscriptionId }) => subscriptionId === gone.id)).toHaveLength(1);
    await becomes(await publish(gone), 'delivered');
    await admin.post(`/admin/v1/deliveries/${gone.waiting}/${gone.id}/retry`);
    await becomes(gone.waiting, 'delivered');
  });

  it('gets notifications again when its abonnement is changed and its callback proves itself', async () => {
    const gone = await goneReceiver();
    receiver.always(answer(410));
    expect((await admin.api.patch(`/abonnement/${gone.id}`, {})).status).toBe(400);
    expect((await admin.get(`${path}/${gone.id}`)).json.disabledAt).not.toBeNull();
    receiver.always(protectedReceiver);
    const probes = receiver.requests.length;
    expect((await admin.api.patch(`/abonnement/${gone.id}`, {})).status).toBe(200);
    expect(receiver.requests.length).toBeGreaterThan(probes);
    await becomes(await publish(gone), 'delivered');
  });

  it('stays disabled when an operator changes only its guarantee', async () => {
    const gone = await goneReceiver();
    const { json } = await admin.patch(`${path}/${gone.id}`, { deliveryGuarantee: 'at-most-once' });
    expect(json.disabledAt).not.toBeNull();
  });
});

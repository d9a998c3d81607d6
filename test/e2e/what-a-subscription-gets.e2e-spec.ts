import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { actingFor } from '../../src/audit/author.js';
import { Catalogue } from '../../src/catalogue/catalogue.service.js';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { readHeldItems } from '../../src/ledger/read-held.js';
import { firstWindow } from '../../src/ledger/release-window.js';
import { SubscriptionsService } from '../../src/subscriptions/subscriptions.service.js';
import type { AdminApi } from '../support/admin-api.js';
import { eventually } from '../support/eventually.js';
import { insertDeliveries } from '../support/insert-deliveries.js';
import { notificatie } from '../support/notificatie.js';
import { answer, hang, protectedReceiver, Receiver } from '../support/receiver.js';
import { brief, codesOf, path, SubscriptionScene, type Subscribed } from '../support/subscription-scene.js';

const scene = new SubscriptionScene();
const { sql, subscribe, newOwner, publish, deliveriesOf, becomes, become, receivedOf } = scene;
let admin: AdminApi;
let receiver: Receiver;

beforeAll(async () => {
  admin = await scene.open();
});
afterAll(() => scene.close());
beforeEach(async () => {
  receiver = await scene.newReceiver();
});
afterEach(() => receiver.stop());

describe('a change of what it gets, or where that goes', () => {
  it('counts for what is accepted from then on; the callback is called only where it is new', async () => {
    const { id, naam } = await subscribe();
    const before = receiver.requests.length;
    const channels = [
      { channel: naam, filters: { kind: 'other' } },
      { channel: naam, filters: { kind: '*' } },
    ];
    expect((await admin.patch(`${path}/${id}`, { channels, callbackUrl: receiver.url })).json).toMatchObject({
      channels,
    });
    expect(receiver.requests).toHaveLength(before);
    const moved = `${receiver.url}/moved`;
    expect((await admin.patch(`${path}/${id}`, { callbackUrl: moved })).json).toMatchObject({
      callbackUrl: moved,
      channels,
    });
    expect(receiver.requests.slice(before).map(({ path: at }) => at)).toEqual(['/webhook/moved', '/webhook/moved']);
    const published = await publish({ naam });
    await becomes(published, 'delivered');
    expect(receivedOf(published)[0]?.path).toBe('/webhook/moved');
  });

  it('is refused where the new callback does not prove itself, and then nothing is changed', async () => {
    const { id } = await subscribe();
    receiver.always(answer(401));
    const answered = await admin.patch(`${path}/${id}`, { callbackUrl: `${receiver.url}/x`, ratePerSecond: 1 });
    expect([answered.status, codesOf(answered)]).toEqual([400, ['nonFieldErrors invalid-callback-url']]);
    expect((await admin.get(`${path}/${id}`)).json).toMatchObject({ callbackUrl: receiver.url, ratePerSecond: null });
  });

  it('enables a disabled subscription where its callback proves itself', async () => {
    const { id } = await subscribe();
    await admin.api.app.get(SubscriptionsService).disable(id);
    expect((await admin.patch(`${path}/${id}`, { channels: [] })).json.disabledAt).not.toBeNull();
    expect((await admin.patch(`${path}/${id}`, { callbackUrl: receiver.url })).json.disabledAt).toBeNull();
  });
});

describe('the settings of a subscription', () => {
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

describe('what a paused subscription gets', () => {
  /** With a callback URL of its own: what is done to its endpoint concerns no other. */
  const subscribeApart = () => subscribe({ callbackUrl: `${receiver.url}/${randomUUID()}` });

  /** One after the other, in different milliseconds: ids made in the same one are in no order. */
  async function publishInOrder(to: Subscribed, count: number): Promise<string[]> {
    const ids: string[] = [];
    while (ids.length < count) {
      const last = Date.now();
      ids.push(await publish(to));
      await eventually(() => Date.now() > last, 'the next millisecond');
    }
    return ids;
  }

  const deliveryOf = async (id: string) => (await deliveriesOf(id))[0] as unknown as Record<string, unknown>;
  const act = (subscribed: Subscribed, action: string) => admin.post(`${path}/${subscribed.id}/${action}`);
  const heldOf = async ({ id }: Subscribed) =>
    (await admin.get(`${path}/${id}`)).json.held as { count: number; byReason: object; isDropping: boolean };
  const receivedBy = ({ naam }: Subscribed) =>
    receiver.notifications
      .filter(({ text }) => (JSON.parse(text) as { kanaal: string }).kanaal === naam)
      .map(({ headers }) => headers['webhook-id']);

  it('is held from the moment it is accepted, and sent once it is resumed, the oldest first', async () => {
    const paused = await subscribeApart();
    await act(paused, 'pause');
    const ids = await publishInOrder(paused, 64);
    expect(await deliveryOf(ids[0]!)).toMatchObject({ state: 'held', attemptCount: 0 });
    await become(ids, 'held');
    expect(await heldOf(paused)).toMatchObject({ count: 64, byReason: { paused: 64 }, isDropping: false });
    expect(receivedBy(paused)).toEqual([]);
    // One call at a time shows the order in which they were released, and not how fast each is answered.
    await admin.patch(`${path}/${paused.id}`, { maxConcurrency: 1 });
    await act(paused, 'resume');
    await become(ids, 'delivered');
    const received = receivedBy(paused);
    expect(received.toSorted()).toEqual(ids.toSorted());
    // They are released a few together, and more with each window. On a busy machine a single one may come after all
    // that were released by then: late with its lock, or held once more. In no order they would be 21 places away from
    // their own on average, the newest first 32.
    const places = ids.map((id, place) => Math.abs(received.indexOf(id) - place));
    expect(places.reduce((sum, each) => sum + each) / ids.length).toBeLessThan(firstWindow);
    expect(await heldOf(paused)).toMatchObject({ count: 0, byReason: {} });
  });

  it('is not sent again while it is paused, although it was waiting for another attempt', async () => {
    const [subscribed, other] = [await subscribeApart(), await subscribeApart()];
    // So often that it is waiting still when it is paused.
    const policy = { maxRetries: 100, backoffFactor: 0.5, baseFactor: 1 };
    for (const each of [subscribed, other]) await admin.put(`${path}/${each.id}/retry-policy`, policy);
    receiver.always(answer(503));
    const id = await publish(subscribed);
    await become([id], 'waiting');
    await act(subscribed, 'pause');
    await become([id], 'held'); // a call that was under way ends like the others
    const sent = receivedBy(subscribed);
    await publish(other);
    await eventually(() => receivedBy(other).length > 1, 'another with the same delays to be sent again');
    expect(receivedBy(subscribed)).toEqual(sent);
    receiver.always(protectedReceiver);
    const before = await deliveryOf(id);
    await act(subscribed, 'resume');
    await become([id], 'delivered');
    // Holding it has used up no attempt.
    expect((await deliveryOf(id)).attemptCount).toBe((before.attemptCount as number) + 1);
  });

  it('keeps no other subscription waiting', async () => {
    const [paused, other] = [await subscribeApart(), await subscribeApart()];
    await act(paused, 'pause');
    const held = await publish(paused);
    await become([await publish(other)], 'delivered');
    await become([held], 'held');
    await act(paused, 'resume');
    await become([held], 'delivered');
    expect(receivedBy(paused)).toEqual([held]);
  });

  it('is dropped when an operator says so, and what is accepted after that is kept', async () => {
    const paused = await subscribeApart();
    await act(paused, 'pause');
    const dropped = await publishInOrder(paused, 5);
    await become(dropped, 'held');
    expect((await act(paused, 'drop-held')).status).toBe(202);
    const kept = await publishInOrder(paused, 5);
    await become(dropped, 'cancelled');
    await become(kept, 'held');
    await eventually(async () => (await act(paused, 'resume')).status === 200, 'it to be resumed');
    await become(kept, 'delivered');
    expect(receivedBy(paused).toSorted()).toEqual(kept.toSorted());
  });

  it('is cancelled when the subscription is deleted', async () => {
    const paused = await subscribeApart();
    await act(paused, 'pause');
    const ids = await publishInOrder(paused, 3);
    await become(ids, 'held');
    await admin.api.delete(`/abonnement/${paused.id}`);
    await become(ids, 'cancelled');
    expect(receivedBy(paused)).toEqual([]);
  });

  it('goes on being held when it is paused again in the middle of its release', async () => {
    const paused = await subscribeApart();
    await act(paused, 'pause');
    const ids = await publishInOrder(paused, 5);
    await become(ids, 'held');
    // Slow enough that most of them have not gone out when it is paused.
    await admin.patch(`${path}/${paused.id}`, { ratePerSecond: 0.5 });
    await act(paused, 'resume');
    await eventually(() => receivedBy(paused).length > 0, 'the first');
    await act(paused, 'pause');
    await eventually(async () => {
      const states = await Promise.all(ids.map(async (id) => (await deliveryOf(id)).state));
      return states.every((state) => state === 'held' || state === 'delivered');
    }, 'the others to be held');
    await admin.patch(`${path}/${paused.id}`, { ratePerSecond: null });
    await act(paused, 'resume');
    await become(ids, 'delivered');
    expect(receivedBy(paused).toSorted()).toEqual(ids.toSorted());
  });
});

describe('a paused subscription', () => {
  const reported = (id: string) =>
    admin.api.logged.filter(({ subscriptionId }) => subscriptionId === id).map(({ event }) => event);

  it('is told to be paused, perhaps, where the process that did it cannot read it then', async () => {
    const { id } = await subscribe();
    let isAway = true;
    const refresh = () => (isAway ? Promise.reject(new Error('no answer')) : Promise.resolve());
    admin.api.app.get(Catalogue).register({ refresh });
    try {
      const { status, json } = await admin.post(`${path}/${id}/pause`);
      expect([status, json.code, json.detail]).toEqual([
        503,
        'service_unavailable',
        expect.stringContaining('may have been done'),
      ]);
    } finally {
      isAway = false;
    }
    expect(admin.api.logged).toContainEqual(
      expect.objectContaining({ event: 'subscription.paused', subscriptionId: id }),
    );
    expect((await admin.get(`${path}/${id}`)).json.pausedAt).not.toBeNull();
  });

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
    const stale = { 'if-match': '"of before"' };
    expect((await admin.post(`${path}/${id}/drop-held`, undefined, { headers: stale })).status).toBe(412);
    const answered = await admin.post(`${path}/${id}/drop-held`);
    expect(answered).toMatchObject({ status: 202, json: { id, held: { isDropping: true } } });
    await becomes(dropped, 'cancelled');
    await eventually(async () => (await admin.post(`${path}/${id}/resume`)).status === 200, 'it to be resumed');
    expect((await deliveriesOf(kept))[0]).toMatchObject({ state: 'waiting' });
  });

  it('is told to have dropped, perhaps, where what it holds then cannot be read', async () => {
    const { id } = await subscribe();
    await admin.post(`${path}/${id}/pause`);
    const [newest] = await insertDeliveries(sql, {
      notifications: 1,
      subscriptionIds: [id],
      state: 'held',
      columns: { held_for: "'paused'" },
    });
    const postgres = admin.api.app.get(Postgres);
    const query = postgres.query.bind(postgres);
    const away = vi.spyOn(postgres, 'query').mockImplementation((statement, values) => {
      if (statement === readHeldItems) return Promise.reject(new Error('no answer'));
      return query(statement, values);
    });
    const { status, json } = await admin.post(`${path}/${id}/drop-held`);
    away.mockRestore();
    expect([status, json.code, json.detail]).toEqual([
      503,
      'service_unavailable',
      expect.stringContaining('may have been done'),
    ]);
    const isCancelled = `SELECT FROM delivery WHERE notification_id = $1 AND state = 'cancelled'`;
    await eventually(async () => (await sql(isCancelled, [newest])).length === 1, 'it to be dropped');
  });

  it('is not resumed while it drops', async () => {
    const { id } = await subscribe();
    await admin.post(`${path}/${id}/pause`);
    // A locked row is dropped later.
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
    for (const { id } of [once, often]) await admin.patch(`${path}/${id}`, brief);
    receiver.always(hang);
    const [unknown, waiting] = [await publish(once), await publish(often)];
    await becomes(unknown, 'unknown');
    await becomes(waiting, 'waiting');
    expect(receivedOf(unknown)).toHaveLength(1);
    // An unknown one is counted when the process has heard of the commit.
    await eventually(async () => {
      const { text } = await admin.api.get(`${admin.api.origin}/metrics`, { token: null });
      expect(text).toMatch(/heraut_deliveries_unknown_total [1-9]/);
      expect(text).toMatch(/heraut_delivery_attempts_total\{guarantee="at-most-once",outcome="unknown"\} [1-9]/);
      return true;
    }, 'both to be counted');
  });

  it('is in an abonnement only where it was set, and a PUT without it leaves it', async () => {
    const { id, naam } = await subscribe();
    const abonnement = async () => (await admin.api.get(`/abonnement/${id}`)).json;
    expect(await abonnement()).not.toHaveProperty('deliveryGuarantee');
    await admin.api.patch(`/abonnement/${id}`, { deliveryGuarantee: 'at-most-once' });
    expect(await abonnement()).toMatchObject({ deliveryGuarantee: 'at-most-once', kanalen: [{ naam }] });
    await admin.api.patch(`/abonnement/${id}`, { deliveryGuarantee: null });
    expect(await abonnement()).not.toHaveProperty('deliveryGuarantee');
    await admin.api.patch(`/abonnement/${id}`, { delivery_guarantee: 'at-least-once' });
    const known = { callbackUrl: receiver.url, auth: 'Bearer secret-of-the-receiver' };
    await admin.api.put(`/abonnement/${id}`, known);
    expect(await abonnement()).toMatchObject({ deliveryGuarantee: 'at-least-once' });
    await admin.api.put(`/abonnement/${id}`, { ...known, deliveryGuarantee: null });
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
    const reported = () =>
      admin.api.logged.filter(
        ({ event, subscriptionId }) => event === 'subscription.disabled' && subscriptionId === subscribed.id,
      );
    await eventually(() => reported().length > 0, 'it to be disabled'); // after its deliveries have failed
    const { json } = await admin.get(`${path}/${subscribed.id}`);
    expect(json.disabledAt).not.toBeNull();
    expect(reported()).toHaveLength(1);
    receiver.always(protectedReceiver);
  });

  it('is disabled by Heraut itself, also where an operator published by hand what it was called with', async () => {
    const { id, naam } = await subscribe();
    receiver.always(answer(410));
    let end = () => {};
    const caller = { client: 'another', address: '127.0.0.1', requestId: 'another' };
    const otherRequest = actingFor(caller, () => new Promise<void>((resolve) => (end = resolve)));
    expect((await admin.post('/admin/v1/notifications', notificatie(naam))).status).toBe(201);
    const entries = async () =>
      (await admin.api.get(`${admin.api.origin}/admin/v1/audit?subject=subscription/${id}`)).json.entries as object[];
    const disabled = (entry: object) => 'action' in entry && entry.action === 'subscription.disabled';
    await eventually(async () => (await entries()).some(disabled), 'it to be disabled');
    end();
    await otherRequest;
    expect((await entries()).filter(disabled)).toMatchObject([
      {
        by: 'system',
        client: null,
        address: null,
        requestId: null,
        before: { disabledAt: null },
        after: { disabledAt: expect.any(String) },
      },
    ]);
  });

  it('is not the one that has another address by then, which gets what the old one refused', async () => {
    const subscribed = await subscribe();
    // The call stays open while the address is changed, also on a machine on which that takes seconds.
    expect((await admin.patch(`${path}/${subscribed.id}`, { timeoutSeconds: 20 })).status).toBe(200);
    let sayGone: (() => void) | undefined;
    receiver.always((request, response) => {
      if (request.path.endsWith('/moved') || request.headers['webhook-id'] === undefined)
        return protectedReceiver(request, response);
      sayGone = () => answer(410)(request, response);
    });
    const before = await publish(subscribed);
    await eventually(() => sayGone !== undefined, 'the call to be open');
    const moved = { callbackUrl: `${receiver.url}/moved` };
    expect((await admin.api.patch(`/abonnement/${subscribed.id}`, moved)).status).toBe(200);
    sayGone!();
    await becomes(before, 'delivered');
    expect(receivedOf(before).map(({ path }) => path.endsWith('/moved'))).toEqual([false, true]);
    await becomes(await publish(subscribed), 'delivered');
    expect((await admin.get(`${path}/${subscribed.id}`)).json.disabledAt).toBeNull();
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
    const proofs = receiver.requests.length;
    expect((await admin.api.patch(`/abonnement/${gone.id}`, {})).status).toBe(200);
    expect(receiver.requests.length).toBeGreaterThan(proofs);
    await becomes(await publish(gone), 'delivered');
  });

  it('stays disabled when an operator changes only its guarantee', async () => {
    const gone = await goneReceiver();
    const { json } = await admin.patch(`${path}/${gone.id}`, { deliveryGuarantee: 'at-most-once' });
    expect(json.disabledAt).not.toBeNull();
  });
});

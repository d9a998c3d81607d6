import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { firstWindow } from '../../src/ledger/release-window.js';
import { AdminApi } from '../support/admin-api.js';
import { eventually } from '../support/eventually.js';
import { lastPart } from '../support/last-part.js';
import { notificatie } from '../support/notificatie.js';
import { answer, protectedReceiver, Receiver } from '../support/receiver.js';

const path = '/admin/v1/subscriptions';

describe('what a paused subscription gets', () => {
  let admin: AdminApi;
  let receiver: Receiver;

  beforeAll(async () => {
    [admin, receiver] = await Promise.all([AdminApi.start(), Receiver.start()]);
  });
  afterEach(() => receiver.always(protectedReceiver));
  afterAll(() => Promise.all([admin.close(), receiver.stop()]));

  interface Subscribed {
    id: string;
    naam: string;
  }

  async function subscribe(): Promise<Subscribed> {
    const naam = randomUUID();
    await admin.api.post('/kanaal', { naam });
    // A callback URL of its own: what one test does to its endpoint concerns no other.
    const body = { callbackUrl: `${receiver.url}/${naam}`, auth: 'Bearer secret', kanalen: [{ naam }] };
    const { json } = await admin.api.post('/abonnement', body);
    return { id: lastPart(json.url), naam };
  }

  async function publish({ naam: kanaal }: Subscribed): Promise<string> {
    const { status, headers } = await admin.api.post('/notificaties', notificatie(kanaal));
    expect(status).toBe(201);
    return headers.get('notification-id')!;
  }

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

  const deliveryOf = async (id: string) =>
    (await admin.get(`/admin/v1/deliveries?notification=${id}`)).json.deliveries[0] as unknown as Record<
      string,
      unknown
    >;
  const become = (ids: string[], state: string) =>
    Promise.all(
      ids.map((id) => eventually(async () => (await deliveryOf(id)).state === state, `${id} to be ${state}`)),
    );
  const act = (subscribed: Subscribed, action: string) => admin.post(`${path}/${subscribed.id}/${action}`);
  const heldOf = async ({ id }: Subscribed) =>
    (await admin.get(`${path}/${id}`)).json.held as { count: number; byReason: object; isDropping: boolean };
  const receivedBy = ({ naam }: Subscribed) =>
    receiver.notifications.filter((request) => request.path.endsWith(naam)).map(({ headers }) => headers['webhook-id']);

  it('is held from the moment it is accepted, and sent once it is resumed, the oldest first', async () => {
    const paused = await subscribe();
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
    const [subscribed, other] = [await subscribe(), await subscribe()];
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
    const [paused, other] = [await subscribe(), await subscribe()];
    await act(paused, 'pause');
    const held = await publish(paused);
    await become([await publish(other)], 'delivered');
    await become([held], 'held');
    await act(paused, 'resume');
    await become([held], 'delivered');
    expect(receivedBy(paused)).toEqual([held]);
  });

  it('is dropped when an operator says so, and what is accepted after that is kept', async () => {
    const paused = await subscribe();
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
    const paused = await subscribe();
    await act(paused, 'pause');
    const ids = await publishInOrder(paused, 3);
    await become(ids, 'held');
    await admin.api.delete(`/abonnement/${paused.id}`);
    await become(ids, 'cancelled');
    expect(receivedBy(paused)).toEqual([]);
  });

  it('goes on being held when it is paused again in the middle of its release', async () => {
    const paused = await subscribe();
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

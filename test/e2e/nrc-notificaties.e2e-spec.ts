import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { Api } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { lastPart } from '../support/last-part.js';
import { Receiver } from '../support/receiver.js';

let api: Api;
let receiver: Receiver;

beforeAll(async () => {
  [api, receiver] = await Promise.all([Api.start(), Receiver.start()]);
});

afterAll(() => Promise.all([api.close(), receiver.stop()]));

const notification = (kanaal: string, more: object = {}) => ({
  kanaal,
  hoofdObject: 'http://openzaak:8000/zaken/1',
  resource: 'status',
  resourceUrl: 'http://openzaak:8000/statussen/1',
  actie: 'create',
  aanmaakdatum: '2025-01-01T10:00:00.123456+01:00',
  ...more,
});

async function newChannel(...filters: string[]): Promise<string> {
  const naam = randomUUID();
  await api.post('/kanaal', { naam, filters });
  return naam;
}

async function subscribe(...kanalen: { naam: string; filters?: Record<string, string> }[]): Promise<string> {
  const { json } = await api.post('/abonnement', { callbackUrl: receiver.url, auth: 'Bearer x', kanalen });
  return lastPart(json.url);
}

/** The subscriptions for which the ledger has a delivery. */
async function deliveredTo(notificationId: string | null): Promise<string[]> {
  const rows: { subscription_id: string }[] = await api.app
    .get(Postgres)
    .dataSource.query('SELECT subscription_id FROM delivery WHERE notification_id = $1', [notificationId]);
  return rows.map((row) => row.subscription_id).sort();
}

describe('publishing', () => {
  it('answers with the notification as receivers get it, byte for byte, and its id in a header', async () => {
    const kanaal = await newChannel('object_type');
    await subscribe({ naam: kanaal });
    const sent = notification(kanaal, { kenmerken: { object_type: 'a' }, extra: 1 });
    const { status, headers, text, json } = await api.post('/notificaties', sent);
    expect(status).toBe(201);
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('location')).toBeNull();
    expect(json).toEqual({
      ...notification(kanaal),
      aanmaakdatum: '2025-01-01T09:00:00.123456Z',
      kenmerken: { objectType: 'a' },
    });
    const id = headers.get('notification-id');
    const received = await eventually(() =>
      receiver.notifications.find((request) => request.headers['webhook-id'] === id),
    );
    expect(received.text).toBe(text);
  });

  it('names every wrong field at once, with its code', async () => {
    const { status, json } = await api.post('/notificaties', { kanaal: 'nix', actie: '', kenmerken: [] });
    expect(status).toBe(400);
    expect(json.code).toBe('invalid');
    expect(json.invalidParams.map(({ name, code }) => `${name} ${code}`)).toEqual([
      'hoofdObject required',
      'resource required',
      'resourceUrl required',
      'actie blank',
      'aanmaakdatum required',
      'kenmerken not_a_dict',
      'kanaal message_kanaal',
    ]);
  });

  it('stores nothing of a refused notification', async () => {
    const { dataSource } = api.app.get(Postgres);
    const count = async () => (await dataSource.query('SELECT count(*) FROM notification')) as unknown;
    const before = await count();
    const kanaal = await newChannel('a', 'b');
    const refused = [
      notification('nix'),
      notification(kanaal, { kenmerken: { c: '1' } }),
      notification(kanaal, { actie: null }),
    ];
    for (const body of refused) expect((await api.post('/notificaties', body)).status).toBe(400);
    expect(await count()).toEqual(before);
  });

  it('knows a kanaal that another process has just made', async () => {
    const naam = randomUUID();
    // One statement, as processes do it: whoever looked between two would have read the version, and not the channel.
    await api.app.get(Postgres).dataSource.query(
      `WITH raised AS (UPDATE catalogue SET version = version + 1 RETURNING version)
       INSERT INTO channel (id, name, documentation_link, filters, version) SELECT $1, $2, '', '{}', version FROM raised`,
      [randomUUID(), naam],
    );
    expect((await api.post('/notificaties', notification(naam))).status).toBe(201);
  });
});

describe('matching', () => {
  it('asks each subscription once, however many of its entries match, and only on the kanaal', async () => {
    const [kanaal, other] = [await newChannel(), await newChannel()];
    const twice = await subscribe({ naam: kanaal }, { naam: kanaal, filters: { a: '1' } });
    const star = await subscribe({ naam: kanaal, filters: { a: '*', b: '1' } });
    const absent = await subscribe({ naam: kanaal, filters: { c: '1' } });
    await subscribe({ naam: kanaal, filters: { a: '2' } });
    await subscribe({ naam: other });
    await subscribe();
    const { headers } = await api.post('/notificaties', notification(kanaal, { kenmerken: { a: '1', b: '1' } }));
    expect(await deliveredTo(headers.get('notification-id'))).toEqual([twice, star, absent].sort());
  });

  it('follows a subscription that changes its kanalen, and forgets one that is deleted', async () => {
    const [kanaal, other] = [await newChannel(), await newChannel()];
    const id = await subscribe({ naam: kanaal });
    const publish = async (naam: string) =>
      deliveredTo((await api.post('/notificaties', notification(naam))).headers.get('notification-id'));
    expect(await publish(kanaal)).toEqual([id]);
    await api.patch(`/abonnement/${id}`, { kanalen: [{ naam: other }] });
    expect(await publish(kanaal)).toEqual([]);
    expect(await publish(other)).toEqual([id]);
    await api.delete(`/abonnement/${id}`);
    expect(await publish(other)).toEqual([]);
  });
});

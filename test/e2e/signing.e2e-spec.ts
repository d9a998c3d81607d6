import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { AdminApi } from '../support/admin-api.js';
import { Api } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { lastPart } from '../support/last-part.js';
import { notificatie } from '../support/notificatie.js';
import { protectedReceiver, Receiver, type ReceivedRequest } from '../support/receiver.js';

const auth = 'Bearer of-the-receiver';

let admin: AdminApi;
let api: Api;
let receiver: Receiver;

beforeAll(async () => {
  [admin, receiver] = await Promise.all([AdminApi.start(), Receiver.start()]);
  ({ api } = admin);
});
beforeEach(() => {
  receiver.requests.length = 0;
  receiver.always(protectedReceiver);
});
afterAll(() => Promise.all([admin.close(), receiver.stop()]));

interface Subscribed {
  id: string;
  url: string;
  naam: string;
}

async function subscribe(token?: string, via = api): Promise<Subscribed & { headers: Headers }> {
  const naam = randomUUID();
  await via.post('/kanaal', { naam });
  const body = { callbackUrl: receiver.url, auth, kanalen: [{ naam, filters: {} }] };
  const { status, json, headers } = await via.post('/abonnement', body, { token });
  expect(status).toBe(201);
  receiver.requests.length = 0;
  return { id: lastPart(json.url), url: json.url, naam, headers };
}

/** The request that the receiver gets. */
async function deliver({ naam: kanaal }: Subscribed, via = api): Promise<ReceivedRequest> {
  const { headers } = await via.post('/notificaties', notificatie(kanaal));
  const id = headers.get('notification-id');
  return eventually(() => receiver.notifications.find((request) => request.headers['webhook-id'] === id));
}

/** As a receiver does it, with the library that is published for it. */
function isAccepted({ text, headers }: ReceivedRequest, secret: string): boolean {
  try {
    new Webhook(secret).verify(text, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}

const schemesOf = ({ headers }: ReceivedRequest) =>
  String(headers['webhook-signature'])
    .split(' ')
    .map((signature) => signature.split(',')[0]);

const keysPath = ({ id }: Subscribed) => `/admin/v1/subscriptions/${id}/signing-keys`;

describe('a subscription with signing keys', () => {
  it('gets signed notifications, and its authorization as it was given', async () => {
    const subscribed = await subscribe();
    const before = await deliver(subscribed);
    expect(before.headers).not.toHaveProperty('webhook-signature');
    expect(before.headers).not.toHaveProperty('webhook-timestamp');

    const { status, json, headers } = await admin.post(keysPath(subscribed), {});
    expect(status).toBe(201);
    expect(json).toEqual({
      id: json.id,
      scheme: 'v1',
      publicKey: null,
      createdAt: json['createdAt'],
      endsAt: null,
      secret: json.secret,
    });
    expect(headers.get('cache-control')).toBe('no-store');
    const request = await deliver(subscribed);
    expect(request.headers['authorization']).toBe(auth);
    expect(isAccepted(request, json.secret)).toBe(true);
    expect(isAccepted({ ...request, text: `${request.text} ` }, json.secret)).toBe(false);
  });

  it('is signed with both keys after a rotation, and with no ended one', async () => {
    const subscribed = await subscribe();
    const { json: old } = await admin.post(keysPath(subscribed), {});
    const { json: publicOne } = await admin.post(keysPath(subscribed), { scheme: 'v1a' });
    expect(publicOne['publicKey']).toMatch(/^whpk_/);
    expect(publicOne.secret).toBeUndefined();
    const { status, json: next } = await admin.post(`${keysPath(subscribed)}/${old.id}/rotate`, {});
    expect(status).toBe(201);
    const both = await deliver(subscribed);
    expect(schemesOf(both)).toEqual(['v1', 'v1a', 'v1']);
    expect([old, next].map(({ secret }) => isAccepted(both, secret))).toEqual([true, true]);

    const { json: list, text } = await admin.get(keysPath(subscribed));
    const listed = list['signingKeys'] as { id: string; endsAt: string | null; createdAt: string }[];
    expect(listed.map(({ id }) => id)).toEqual([next.id, publicOne.id, old.id]);
    const graceMs = Date.parse(listed[2]!.endsAt!) - Date.parse(listed[0]!.createdAt);
    expect(Math.round(graceMs / 3_600_000)).toBe(24);
    for (const secret of [old.secret, next.secret, 'whsk_', 'whsec_']) expect(text).not.toContain(secret);

    expect((await admin.delete(`${keysPath(subscribed)}/${old.id}`)).status).toBe(204);
    const later = await deliver(subscribed);
    expect([old, next].map(({ secret }) => isAccepted(later, secret))).toEqual([false, true]);
    for (const { id } of [next, publicOne]) await admin.delete(`${keysPath(subscribed)}/${id}`);
    expect((await deliver(subscribed)).headers).not.toHaveProperty('webhook-signature');
  });

  it('has each attempt signed anew under the same id', async () => {
    const subscribed = await subscribe();
    await admin.put(`/admin/v1/subscriptions/${subscribed.id}/retry-policy`, { maxRetries: 1, backoffFactor: 1 });
    const { json } = await admin.post(keysPath(subscribed), {});
    receiver.next((_, response) => response.writeHead(500).end());
    const first = await deliver(subscribed);
    const second = await eventually(() =>
      receiver.notifications.find(
        ({ headers }) => headers['webhook-id'] === first.headers['webhook-id'] && headers['webhook-attempt'] === '2',
      ),
    );
    expect([first, second].map((request) => isAccepted(request, json.secret))).toEqual([true, true]);
    expect(Number(second.headers['webhook-timestamp'])).toBeGreaterThan(Number(first.headers['webhook-timestamp']));
    expect(second.headers['webhook-signature']).not.toBe(first.headers['webhook-signature']);
  });

  it('accepts a secret of its own, and refuses what is none', async () => {
    const subscribed = await subscribe();
    const secret = `whsec_${Buffer.alloc(64, 7).toString('base64')}`;
    const { status, text } = await admin.post(keysPath(subscribed), { secret });
    expect(status).toBe(201);
    expect(text).not.toContain(secret);
    expect(isAccepted(await deliver(subscribed), secret)).toBe(true);

    const wrong = async (body: object) => {
      const answer = await admin.post(keysPath(subscribed), body);
      return [answer.status, answer.json.invalidParams?.map(({ name, code }) => `${name} ${code}`).join()];
    };
    expect(await wrong({ secret: 'whsec_' })).toEqual([400, 'secret invalid-secret']);
    expect(await wrong({ secret: secret.slice(0, -4) + 'AAAA' })).toEqual([400, 'secret invalid-secret']);
    expect(await wrong({ secret: 'x'.repeat(129) })).toEqual([400, 'secret max_length']);
    expect(await wrong({ secret: 5 })).toEqual([400, 'secret invalid']);
    expect(await wrong({ scheme: 'v2' })).toEqual([400, 'scheme invalid_choice']);
    expect(await wrong({ graceSeconds: 1 })).toEqual([400, 'graceSeconds unknown']);
  });

  it('is rotated with a grace of at most seven days', async () => {
    const subscribed = await subscribe();
    const { json } = await admin.post(keysPath(subscribed), {});
    const rotate = (graceSeconds: unknown) => admin.post(`${keysPath(subscribed)}/${json.id}/rotate`, { graceSeconds });
    for (const [grace, code] of [
      [-1, 'min_value'],
      [604_801, 'max_value'],
      [1.5, 'invalid'],
      ['60', 'invalid'],
    ]) {
      const { status, json: problem } = await rotate(grace);
      expect([grace, status, problem.invalidParams?.[0]?.code]).toEqual([grace, 400, code]);
    }
    expect((await rotate(604_800)).status).toBe(201);
    const { status, json: problem } = await rotate(0);
    expect([status, problem.code]).toEqual([409, 'signing-key-rotated']);
  });

  it('has its callback proved by a signed call when that changes', async () => {
    const subscribed = await subscribe();
    const { json } = await admin.post(keysPath(subscribed), {});
    receiver.always((request, response) =>
      response.writeHead(request.headers.authorization && isAccepted(request, json.secret) ? 204 : 401).end(),
    );
    const changed = await api.patch(subscribed.url, { callbackUrl: `${receiver.url}/new` });
    expect(changed.status).toBe(200);
  });
});

describe('an abonnement, for its subscriber', () => {
  const keys = ({ url }: Subscribed) => `${url}/signing-keys`;

  it('has signing keys of its own to make, rotate and end, which the abonnement itself never shows', async () => {
    const token = await api.tokenWith('notificaties.consumeren');
    const subscribed = await subscribe(token);
    const { text: before } = await api.get(subscribed.url, { token });
    const made = await api.post(keys(subscribed), { scheme: 'v1' }, { token });
    expect([made.status, made.headers.get('cache-control')]).toEqual([201, 'no-store']);
    const rotated = await api.post(`${keys(subscribed)}/${made.json['id']}/rotate`, { graceSeconds: 60 }, { token });
    expect(rotated.status).toBe(201);
    const request = await deliver(subscribed);
    expect([made, rotated].map(({ json }) => isAccepted(request, json.secret))).toEqual([true, true]);

    const { list, text } = await api.get(keys(subscribed), { token });
    expect(list.map(({ id }) => id)).toEqual([rotated.json['id'], made.json['id']]);
    expect(text).not.toMatch(/whsec_/);
    expect((await api.get(subscribed.url, { token })).text).toBe(before);
    expect((await api.delete(`${keys(subscribed)}/${made.json['id']}`, { token })).status).toBe(204);
    expect((await api.get(keys(subscribed), { token })).list).toHaveLength(1);
  });

  it('lets nobody else at its keys, but superusers', async () => {
    const subscribed = await subscribe(await api.tokenWith('notificaties.consumeren'));
    const { json } = await api.post(keys(subscribed), {});
    const stranger = { token: await api.tokenWith('notificaties.consumeren', 'notificaties.publiceren') };
    const one = `${keys(subscribed)}/${json['id']}`;
    const answers = [
      await api.get(keys(subscribed), stranger),
      await api.post(keys(subscribed), {}, stranger),
      await api.post(`${one}/rotate`, {}, stranger),
      await api.delete(one, stranger),
      await api.get(keys(subscribed), { token: null }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403]);
    expect((await api.get(keys(subscribed))).list).toMatchObject([{ id: json['id'] }]);
  });

  it('is not signed unless it asks for it', async () => {
    const subscribed = await subscribe();
    expect(subscribed.headers.get('signing-secret')).toBeNull();
    expect((await api.get(keys(subscribed))).list).toEqual([]);
  });
});

describe('with SIGN_BY_DEFAULT', () => {
  it('a new abonnement is signed, and its secret is in a header of the 201 alone', async () => {
    const signing = await Api.start({ SIGN_BY_DEFAULT: 'true' });
    const subscribed = await subscribe(undefined, signing);
    const secret = subscribed.headers.get('signing-secret')!;
    expect(secret).toMatch(/^whsec_/);
    expect(subscribed.headers.get('cache-control')).toBe('no-store');
    const read = await signing.get(subscribed.url);
    expect(Object.keys(read.json)).toEqual(['url', 'callbackUrl', 'kanalen']);
    expect(read.headers.get('signing-secret')).toBeNull();
    expect(isAccepted(await deliver(subscribed, signing), secret)).toBe(true);
    await signing.close();
  });
});

describe('the log', () => {
  it('has no secret of a signing key', async () => {
    const subscribed = await subscribe();
    const { json } = await admin.post(keysPath(subscribed), {});
    await deliver(subscribed);
    await admin.post(keysPath(subscribed), { secret: `${json.secret}!` });
    const logged = JSON.stringify(api.logged);
    expect(logged.length).toBeGreaterThan(100);
    expect(logged).not.toContain(json.secret.slice('whsec_'.length, -1));
  });
});

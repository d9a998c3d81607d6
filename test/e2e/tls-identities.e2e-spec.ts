import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { AdminApi } from '../support/admin-api.js';
import { makeCertificate } from '../support/certificates.js';
import { eventually } from '../support/eventually.js';
import { lastPart } from '../support/last-part.js';
import { notificatie } from '../support/notificatie.js';
import { authority, clients, StrictReceiver } from '../support/strict-receiver.js';

const [one] = clients;
const stranger = makeCertificate('stranger');
/** The server asks for it, and takes it. */
const taken = { certificate: one!.certificate, key: one!.key, authority: authority.certificate };
const ofStranger = { certificate: stranger.certificate, key: stranger.key, authority: authority.certificate };
/** Deliveries that fail one after the other before an endpoint is parked. */
const failures = 5;

let admin: AdminApi;

beforeAll(async () => {
  admin = await AdminApi.start({
    TEST_CALLBACK_AUTH: 'false',
    DISPATCH_INTERVAL_MS: '100',
    CIRCUIT_BREAKER_FAILURES: String(failures),
  });
  // Each is due again at once, and a probe of a parked endpoint is one of them: however many fail, none is a dead
  // letter by then.
  await admin.put('/admin/v1/retry-policy', { maxRetries: 100, backoffFactor: 0 });
});
afterAll(() => admin.close());

interface Subscribed {
  id: string;
  naam: string;
}

/** Its callback is tried before it is there, so what it is refused for comes after that. */
async function subscribe(callbackUrl: string, tls: object, later?: object): Promise<Subscribed> {
  const naam = randomUUID();
  await admin.api.post('/kanaal', { naam });
  const body = { callbackUrl, auth: 'Bearer secret', kanalen: [{ naam }], credentials: { tls } };
  const { status, json, text } = await admin.api.post('/abonnement', body);
  if (status !== 201) throw new Error(text);
  const id = lastPart(json.url);
  if (later) await change(id, later);
  return { id, naam };
}

const change = (id: string, tls: object) => admin.patch(`/admin/v1/subscriptions/${id}/credentials`, { tls });

async function publish({ naam: kanaal }: Subscribed): Promise<string> {
  const { headers } = await admin.api.post('/notificaties', notificatie(kanaal));
  return headers.get('notification-id')!;
}

const becomes = ({ id }: Subscribed, notification: string, state: string) =>
  eventually(async () => {
    const { json } = await admin.get(`/admin/v1/deliveries/${notification}/${id}`);
    return json.state === state && json;
  });

/** Of that origin, all that were ever parked. */
const opened = (origin: string) =>
  admin.api.logged
    .filter(({ event, address }) => event === 'endpoint.opened' && String(address).startsWith(origin))
    .map(({ address }) => address);

describe.each([
  [
    'is to trust another authority than that of its receiver',
    { requestCert: false },
    { authority: stranger.certificate },
  ],
  ['shows a certificate that its receiver does not take', {}, ofStranger],
  ['shows no certificate, which its receiver demands', {}, { authority: authority.certificate }],
  ['shows a certificate that its receiver does not take, by TLS 1.2', { maxVersion: 'TLSv1.2' }, ofStranger],
  ['shows none, by TLS 1.2', { maxVersion: 'TLSv1.2' }, { authority: authority.certificate }],
] as const)('a subscription that %s', (_, changes, broken) => {
  const receiver = new StrictReceiver(changes);
  let url: string;

  beforeAll(async () => {
    url = await receiver.start();
  });
  afterAll(() => receiver.stop());

  it('is parked alone: others at the same origin, and at the same URL, get theirs at once', async () => {
    const { origin } = new URL(url);
    const others = await Promise.all([subscribe(url, taken), subscribe(`${origin}/other`, taken)]);
    const refused = await subscribe(url, taken, broken);
    const own = `${url} with TLS identity `;
    for (let nr = 0; nr < failures; nr++) await publish(refused);
    await eventually(() => opened(origin).length > 0);
    const held = await publish(refused);
    await becomes(refused, held, 'held');
    for (const other of others)
      expect(await becomes(other, await publish(other), 'delivered')).toMatchObject({ attemptCount: 1 });
    expect(opened(origin)).toEqual([expect.stringContaining(own)]);
    const { json } = await admin.get('/admin/v1/endpoints');
    const { endpoints } = json as unknown as { endpoints: { address: string; subscriptionIds: string[] }[] };
    expect(endpoints.filter(({ address }) => address.startsWith(origin))).toMatchObject([
      { address: opened(origin)[0], subscriptionIds: [refused.id] },
    ]);
    // With an identity that is taken, nothing keeps back what is held.
    await change(refused.id, taken);
    await becomes(refused, held, 'delivered');
  });
});

describe('a subscription without a TLS identity of its own', () => {
  const receiver = new StrictReceiver();
  let url: string;

  beforeAll(async () => {
    url = await receiver.start();
  });
  afterAll(() => receiver.stop());

  it('is parked alone at a receiver that only those with one can call', async () => {
    const { origin } = new URL(url);
    const [other, refused] = await Promise.all([subscribe(url, taken), subscribe(url, taken)]);
    await admin.patch(`/admin/v1/subscriptions/${refused.id}/credentials`, { tls: null });
    for (let nr = 0; nr < failures; nr++) await publish(refused);
    await eventually(() => opened(origin).length > 0);
    expect(await becomes(other, await publish(other), 'delivered')).toMatchObject({ attemptCount: 1 });
    expect(opened(origin)).toEqual([url]);
  });
});

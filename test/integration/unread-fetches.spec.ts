import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { v7 as uuidv7 } from 'uuid';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { Api } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { protectedReceiver, Receiver } from '../support/receiver.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';

/** Of these the system keeps a few for a caller that does not read, and this process the rest. */
const bodyBytes = 24 * 1024 * 1024;

describe('an application whose clients fetch and do not read', () => {
  let api: Api;
  let receiver: Receiver;
  let path: string;
  const sockets: Socket[] = [];

  beforeAll(async () => {
    receiver = await Receiver.start();
    receiver.always(protectedReceiver);
    api = await Api.start({ ROLES: 'api' });
    const naam = randomUUID();
    await api.post('/kanaal', { naam });
    const abonnement = { callbackUrl: receiver.url, auth: 'Bearer x', kanalen: [{ naam }] };
    const { json } = await api.post('/abonnement', abonnement);
    path = `${new URL(json.url).pathname}/notificaties`;
    const sql = (text: string, values: unknown[]) => api.app.get(Postgres).dataSource.query(text, values);
    const notifications = [uuidv7()];
    await insertNotifications(sql, notifications, { body: JSON.stringify({ x: 'x'.repeat(bodyBytes) }) });
    const subscriptionIds = [json.url.split('/').at(-1)!];
    await insertDeliveries(sql, { notifications, subscriptionIds, state: 'delivered' });
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await Promise.all([api.close(), receiver.stop()]);
  });

  /** @returns when the first bytes of an answer are there, the rest of which is left where it is */
  async function fetchUnread(token: string): Promise<string> {
    const { hostname, port } = new URL(api.origin);
    const socket = connect(Number(port), hostname);
    sockets.push(socket);
    socket.write(`GET ${path} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${token}\r\n\r\n`);
    await once(socket, 'readable');
    return String(socket.read(12));
  }

  it('is refused another page until it has read, or its connections are gone', async () => {
    const token = api.superuserToken;
    expect(await fetchUnread(token)).toBe('HTTP/1.1 200');
    expect(await fetchUnread(token)).toBe('HTTP/1.1 200');
    const refused = await api.get(`${api.origin}${path}`, { token });
    expect(refused).toMatchObject({ status: 429, json: { code: 'too-many-fetches' } });
    expect(refused.headers.get('retry-after')).toBe('5');
    for (const socket of sockets) socket.destroy();
    const page = () => api.get(`${api.origin}${path}`, { token });
    await eventually(async () => (await page()).status === 200, 'a page for a client that reads');
  });
});

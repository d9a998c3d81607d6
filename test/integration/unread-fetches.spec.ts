import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { v7 as uuidv7 } from 'uuid';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { Fetches } from '../../src/pulling/fetches.service.js';
import { Api } from '../support/api.js';
import { eventually } from '../support/eventually.js';
import { protectedReceiver, Receiver } from '../support/receiver.js';
import { insertDeliveries, insertNotifications } from '../support/insert-deliveries.js';
import { lastPart } from '../support/last-part.js';

/** Of these the system keeps a few for a caller that does not read, and this process the rest. */
const bodyBytes = 20 * 1024 * 1024;

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
    const subscriptionIds = [lastPart(json.url)];
    await insertDeliveries(sql, { notifications, subscriptionIds, state: 'delivered' });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    for (const socket of sockets) socket.destroy();
  });
  afterAll(async () => {
    await Promise.all([api.close(), receiver.stop()]);
  });

  /** @returns when the first bytes of an answer are there, the rest of which is left where it is */
  async function fetchUnread(times = 1): Promise<string> {
    const { hostname, port } = new URL(api.origin);
    const socket = connect(Number(port), hostname);
    sockets.push(socket);
    const headers = `host: ${hostname}\r\nauthorization: Bearer ${api.superuserToken}`;
    socket.write(`GET ${path} HTTP/1.1\r\n${headers}\r\n\r\n`.repeat(times));
    await once(socket, 'readable');
    return String(socket.read(12));
  }

  const page = () => api.get(`${api.origin}${path}`, { token: api.superuserToken });
  const refused = { status: 429, json: { code: 'too-many-fetches' } };
  /** As many as it may leave unread. Those of a client that has just gone may count for a moment. */
  async function fetchThreeUnread(): Promise<void> {
    for (let nr = 0; nr < 3; nr++)
      await eventually(async () => (await fetchUnread()) === 'HTTP/1.1 200', 'a page that is left unread');
    expect(await page()).toMatchObject(refused);
  }

  it('is refused another page until it has read, or its connections are gone', async () => {
    await fetchThreeUnread();
    expect((await page()).headers.get('retry-after')).toBe('5');
    for (const socket of sockets) socket.destroy();
    await eventually(async () => (await page()).status === 200, 'a page for a client that reads');
  });

  it('has all back that it asked for on one connection, when that is gone', async () => {
    await eventually(async () => (await page()).status === 200, 'a page for a client that reads');
    const lend = vi.spyOn(api.app.get(Fetches), 'lend');
    expect(await fetchUnread(3)).toBe('HTTP/1.1 200');
    await eventually(() => lend.mock.results.length === 3, 'all pages');
    for (const socket of sockets) socket.destroy();
    await fetchThreeUnread();
  });
});

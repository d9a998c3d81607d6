import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Api } from '../support/api.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { notificatie } from '../support/notificatie.js';
import { Receiver } from '../support/receiver.js';
import { signToken } from '../support/tokens.js';

/** Stands between the server and its database, and can be gone. */
class Line {
  private readonly sockets = new Set<Socket>();
  private server: Server | undefined;
  private port = 0;

  constructor(private readonly target: URL) {}

  get url(): string {
    const url = new URL(this.target);
    url.port = String(this.port);
    return url.href;
  }

  async connect(): Promise<void> {
    this.server = createServer((near) => {
      const far = connect(Number(this.target.port), this.target.hostname);
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.sockets.add(socket);
        socket.on('error', () => other.destroy());
        socket.on('close', () => other.destroy());
        socket.pipe(other);
      }
    });
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = (this.server.address() as AddressInfo).port;
  }

  async cut(): Promise<void> {
    const server = this.server!;
    server.close();
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
    await once(server, 'close');
  }
}

let database: TestDatabase;
let line: Line;
let api: Api;
let receiver: Receiver;

beforeAll(async () => {
  database = await createDatabase();
  line = new Line(new URL(database.url));
  await line.connect();
  [api, receiver] = await Promise.all([Api.start({ DATABASE_URL: line.url }), Receiver.start()]);
});

afterAll(async () => {
  await Promise.all([api.close(), receiver.stop()]);
  await line.cut();
  await database.drop();
});

const notification = notificatie('zaken');

describe('while the database is out of reach', () => {
  it('every call is refused with 503 and Retry-After, and all is well when it is back', async () => {
    expect((await api.post('/kanaal', { naam: 'zaken' })).status).toBe(201);
    await line.cut();
    const stranger = { token: signToken({ clientId: 'stranger', secret: 'x' }) };
    const answers = [
      await api.get('/kanaal'),
      await api.post('/kanaal', { naam: 'other' }),
      await api.get('/abonnement'),
      await api.post('/abonnement', { callbackUrl: receiver.url, auth: 'x' }),
      await api.post('/notificaties', notification),
      await api.get('/kanaal', stranger),
    ];
    for (const { status, json, headers } of answers) {
      expect([status, json.code]).toEqual([503, 'service_unavailable']);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
    await line.connect();
    await eventually(async () => (await api.post('/notificaties', notification)).status === 201, 'publishing');
    expect((await api.get('/kanaal')).list.map(({ naam }) => naam)).toEqual(['zaken']);
  });
});

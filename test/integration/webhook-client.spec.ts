import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { readSettings } from '../../src/config/settings.js';
import { UndiciWebhookClient } from '../../src/delivery/webhook-client.undici.js';
import type { WebhookRequest, WebhookResponse } from '../../src/delivery/webhook-client.js';
import { eventually } from '../support/eventually.js';
import { answer, drip, hang, huge, nonsense, Receiver, redirect, reset } from '../support/receiver.js';

const megabyte = 1024 * 1024;

/** A server that answers a whole request with exactly these bytes, and records the requests. */
class RawReceiver {
  private constructor(
    private readonly server: Server,
    readonly sockets: Socket[],
    readonly received: string[],
  ) {}

  static async start(say: (socket: Socket) => void): Promise<RawReceiver> {
    const [sockets, received]: [Socket[], string[]] = [[], []];
    const server = createServer((socket) => {
      sockets.push(socket);
      let text = '';
      socket.on('error', () => {});
      socket.on('data', (bytes) => {
        text += bytes.toString('latin1');
        if (!text.includes('\r\n\r\n{}')) return;
        received.push(text);
        text = '';
        say(socket);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new RawReceiver(server, sockets, received);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }
}

describe('a call to a receiver', () => {
  let receiver: Receiver;
  let raw: RawReceiver | undefined;
  let client: UndiciWebhookClient;
  let timeoutMs: number;

  beforeEach(async () => {
    receiver = await Receiver.start();
    receiver.always(answer(204));
    client = newClient();
  });
  afterEach(async () => {
    await client.close();
    await receiver.stop();
    await raw?.stop();
    raw = undefined;
  });

  function newClient(settings: Record<string, string> = {}): UndiciWebhookClient {
    const read = readSettings({ NOTIFICATION_REQUESTS_TIMEOUT: '20', ...settings });
    timeoutMs = read.NOTIFICATION_REQUESTS_TIMEOUT * 1000;
    return new UndiciWebhookClient(read);
  }

  async function useClient(settings: Record<string, string>): Promise<void> {
    await client.close();
    client = newClient(settings);
  }

  function request(parts: Partial<WebhookRequest> = {}): WebhookRequest {
    const [headers, body] = [{ 'content-type': 'application/json' }, Buffer.from('{}')];
    return { url: receiver.url, headers, body, timeoutMs, ...parts };
  }

  async function postRaw(text: string): Promise<WebhookResponse> {
    raw = await RawReceiver.start((socket) => socket.end(text));
    return client.post(request({ url: raw.url }));
  }

  it('carries exactly the bytes and headers it was given', async () => {
    const body = Buffer.from('{"π": "€ 😀",\r\n\t"n": 1.0}\n');
    const headers = {
      'content-type': 'application/json',
      accept: '*/*',
      'user-agent': 'Heraut/test',
      authorization: 'Bearer geheim "quoted" ~ tail',
      'webhook-id': '019a9f3e-8c00-7000-8000-0123456789ab',
      'webhook-attempt': '3',
    };
    const url = `${receiver.url}/deep%20path/;x=1?a=b&c=%26#fragment`;
    const response = await client.post({ url, headers, body, timeoutMs });
    expect(response).toEqual({
      kind: 'answered',
      status: 204,
      retryAfter: undefined,
      excerpt: '',
      durationMs: expect.any(Number),
    });
    const [received] = receiver.requests;
    expect(received).toMatchObject({ method: 'POST', path: '/webhook/deep%20path/;x=1?a=b&c=%26' });
    expect(received!.text).toBe(body.toString());
    expect(received!.headers).toEqual({
      ...headers,
      host: new URL(receiver.url).host,
      connection: 'keep-alive',
      'content-length': String(body.length),
    });
  });

  it.each([200, 206, 299, 400, 410, 429, 500, 599])('tells of an answer %i', async (status) => {
    receiver.always(answer(status, { 'retry-after': '7' }, 'why'));
    const excerpt = status < 300 ? '' : 'why';
    expect(await client.post(request())).toMatchObject({ kind: 'answered', status, retryAfter: '7', excerpt });
  });

  it('follows no redirect', async () => {
    receiver.next(redirect(`${receiver.url}/elsewhere`, 307));
    expect(await client.post(request())).toMatchObject({ kind: 'answered', status: 307 });
    expect(receiver.requests).toHaveLength(1);
  });

  it('is not repeated, and may have arrived, when the connection is reset', async () => {
    receiver.next(reset);
    expect(await client.post(request())).toMatchObject({
      kind: 'unanswered',
      reason: expect.stringMatching(/ECONNRESET|UND_ERR_SOCKET/),
      wasSent: true,
    });
    expect(receiver.requests).toHaveLength(1);
  });

  it('uses connections again', async () => {
    raw = await RawReceiver.start((socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'));
    for (let times = 0; times < 10; times++) await client.post(request({ url: raw.url }));
    expect(raw.received).toHaveLength(10);
    // A call from within the answer of the one before finds its connection not free yet.
    expect(raw.sockets.length).toBeLessThanOrEqual(2);
  });

  it('waits for no other call to the same receiver', async () => {
    receiver.next(hang);
    const hanging = client.post(request());
    await eventually(() => receiver.requests.length === 1);
    expect(await client.post(request())).toMatchObject({ kind: 'answered' });
    client.abandonAll();
    await hanging;
  });

  it.each([
    ['speaks another protocol', nonsense],
    ['closes without an answer', (_: unknown, response: { socket: Socket | null }) => void response.socket?.end()],
  ])('fails with a readable reason when the receiver %s', async (_what, behaviour) => {
    receiver.next(behaviour);
    const response = await client.post(request());
    expect(response).toMatchObject({
      kind: 'unanswered',
      wasSent: true,
      reason: expect.stringMatching(/^\w.{10,}/),
    });
    expect(await client.post(request())).toMatchObject({ kind: 'answered' });
  });

  it.each([
    ['a status line of nonsense', 'HTTP/1.1 OK fine\r\n\r\n'],
    ['an unknown status', 'HTTP/1.1 099 Low\r\ncontent-length: 0\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello'],
    ['a negative length', 'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n'],
    ['less than it promised', 'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello'],
    ['a chunk that is none', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'],
    ['a head of a megabyte', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(megabyte)}\r\n\r\n`],
    ['a change of protocol', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'],
  ])('fails when the receiver answers with %s', async (_what, text) => {
    expect(await postRaw(text)).toMatchObject({ kind: 'unanswered', wasSent: true });
  });

  it('does not mistake an informational response for the answer', async () => {
    const hints = 'HTTP/1.1 102 Processing\r\nretry-after: 99\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n';
    const response = await postRaw(`${hints}HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\nno`);
    expect(response).toMatchObject({ kind: 'answered', status: 503, retryAfter: undefined, excerpt: 'no' });
  });

  it('uses the first of several Retry-After headers', async () => {
    const response = await postRaw(
      'HTTP/1.1 503 Busy\r\nretry-after: 5\r\nRetry-After: 9\r\ncontent-length: 0\r\n\r\n',
    );
    expect(response).toMatchObject({ kind: 'answered', status: 503, retryAfter: '5' });
  });

  it('keeps the first 500 UTF-16 units of a failure, also when that cuts a character in half', async () => {
    receiver.next(answer(500, {}, `${'x'.repeat(499)}😀 and more`));
    const response = await client.post(request());
    expect(response).toMatchObject({ kind: 'answered', excerpt: expect.stringMatching(/^x{499}/) });
    expect((response as { excerpt: string }).excerpt).toHaveLength(500);
  });

  it('gives up an answer of 100 MB after the first megabyte, and leaves the rest unread', async () => {
    receiver.next(huge(100 * megabyte), huge(100 * megabyte, 500));
    for (let times = 0; times < 2; times++) {
      expect(await client.post(request())).toMatchObject({
        kind: 'unanswered',
        reason: expect.stringContaining('longer than 1048576 bytes'),
      });
    }
    await eventually(() => receiver.answeredBytes.length === 2, 'both to be over');
    // Beyond the first there is only what the system buffers between the two, at most 37 MB on Linux.
    for (const bytes of receiver.answeredBytes) expect(bytes).toBeLessThan(50 * megabyte);
  });

  it('accepts an answer of the greatest length', async () => {
    receiver.next(huge(megabyte));
    expect(await client.post(request())).toMatchObject({ kind: 'answered', status: 200 });
  });

  describe('with a slow receiver', () => {
    beforeEach(() => useClient({ NOTIFICATION_REQUESTS_TIMEOUT: '0.4' }));

    const tooLate = {
      kind: 'unanswered',
      reason: 'no complete answer within 0.4 s',
      durationMs: expect.any(Number),
      wasSent: true,
    };

    /** By our deadline, not by one of undici's: each of those has a reason of its own. */
    async function expectTooLate(response: Promise<WebhookResponse>): Promise<void> {
      const found = await response;
      expect(found).toEqual(tooLate);
      expect((found as { durationMs: number }).durationMs).toBeGreaterThanOrEqual(400);
    }

    it('is read although this process was blocked until the time was over', async () => {
      raw = await RawReceiver.start((socket) => {
        socket.write('HTTP/1.1 204 No Content\r\n\r\n');
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
      });
      expect(await client.post(request({ url: raw.url }))).toMatchObject({ kind: 'answered', status: 204 });
    });

    it('ends when it does not answer at all', async () => {
      receiver.next(hang);
      await expectTooLate(client.post(request()));
    });

    it('ends when it stops in the middle of its answer', async () => {
      receiver.next((_request, response) => void response.writeHead(200, { 'content-length': '10' }).write('half'));
      await expectTooLate(client.post(request()));
    });

    it('ends when it drips, however lively', async () => {
      receiver.next(drip(10));
      await expectTooLate(client.post(request()));
    });

    it('ends when it stops in the middle of its head', async () => {
      raw = await RawReceiver.start((socket) => socket.write('HTTP/1.1 200 OK\r\nx-slow: '));
      await expectTooLate(client.post(request({ url: raw.url })));
    });

    it('closes the connection of a call it gave up', async () => {
      raw = await RawReceiver.start(() => {});
      await client.post(request({ url: raw.url }));
      await eventually(() => raw!.sockets[0]!.destroyed || raw!.sockets[0]!.readableEnded);
      expect(raw.received).toHaveLength(1);
    });

    it('ends when it accepts no connection; the call has not arrived', async () => {
      // A listener whose backlog is full: the system of the receiver does not answer.
      const full = await fullListener();
      try {
        await client.close();
        client = newClient({ NOTIFICATION_REQUESTS_TIMEOUT: '0.4' });
        expect(await client.post(request({ url: full.url }))).toEqual({ ...tooLate, wasSent: false });
      } finally {
        full.close();
      }
    });
  });

  it('fails when no process listens; the call has not arrived', async () => {
    await receiver.stop();
    const response = await client.post(request());
    expect(response).toMatchObject({
      kind: 'unanswered',
      wasSent: false,
      reason: expect.stringContaining('ECONNREFUSED'),
    });
    await receiver.start();
    expect(await client.post(request())).toMatchObject({ kind: 'answered' });
  });

  it('fails when the name is not known', async () => {
    const response = await client.post(request({ url: 'http://no-such-host.invalid/' }));
    expect(response).toMatchObject({
      kind: 'unanswered',
      wasSent: false,
      reason: expect.stringMatching(/ENOTFOUND|EAI_AGAIN/),
    });
  });

  it.each(['', 'not a url', 'http://', 'http://host:99999/'])('fails with the callback URL %j', async (url) => {
    expect(await client.post(request({ url }))).toMatchObject({ kind: 'unanswered', wasSent: false });
  });

  it('fails with a callback URL of another scheme', async () => {
    expect(await client.post(request({ url: 'ftp://127.0.0.1/' }))).toMatchObject({
      kind: 'unanswered',
      wasSent: false,
    });
  });

  it.each(['Bearer x\r\nx-injected: 1', 'Bearer x\nx-injected: 1', 'Bearer \0', 'Bearer €'])(
    'does not send an invalid header value (%j), and does not show it in the error',
    async (authorization) => {
      const response = await client.post(request({ headers: { authorization } }));
      expect(response).toMatchObject({ kind: 'unanswered', wasSent: false });
      expect((response as { reason: string }).reason).not.toContain('Bearer');
      expect(receiver.requests).toHaveLength(0);
      expect(await client.post(request())).toMatchObject({ kind: 'answered' });
    },
  );

  describe('where only public callbacks are allowed', () => {
    beforeEach(() => useClient({ CALLBACK_NETWORKS: 'public' }));

    it.each(['127.0.0.1', 'localhost', '[::1]', '0x7f.1', '2130706433', '[::ffff:127.0.0.1]', '169.254.169.254'])(
      'does not call %s',
      async (host) => {
        const { port } = new URL(receiver.url);
        const response = await client.post(request({ url: `http://${host}:${port}/webhook` }));
        expect(response).toMatchObject({ kind: 'unanswered', wasSent: false });
        expect((response as { reason: string }).reason).toMatch(/not (one|an address) callbacks may use/);
        expect(receiver.requests).toHaveLength(0);
      },
    );

    it('calls an address that is allowed although it is not public', async () => {
      await useClient({ CALLBACK_NETWORKS: 'public', CALLBACK_ALLOWED_NETWORKS: '127.0.0.0/8' });
      expect(await client.post(request())).toMatchObject({ kind: 'answered', status: 204 });
    });
  });

  it('ends every call when told to, as abandoned and not as the receiver’s fault', async () => {
    receiver.always(hang);
    const calls = Array.from({ length: 20 }, () => client.post(request()));
    await eventually(() => receiver.requests.length === 20);
    client.abandonAll();
    expect(await Promise.all(calls)).toMatchObject(calls.map(() => ({ kind: 'abandoned', wasSent: true })));
    receiver.always(answer(204));
    expect(await client.post(request())).toMatchObject({ kind: 'answered' });
  });
});

/** Listens with a backlog of one, which is full: further connects get no answer. */
async function fullListener(): Promise<{ url: string; close: () => void }> {
  const script = `
    const net = require('node:net');
    const server = net.createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      process.stdout.write(String(server.address().port));
      while (true) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [text] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(text.toString());
  const fillers = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}));
  await eventually(() => fillers.filter(({ connecting }) => !connecting).length >= 2);
  return {
    url: `http://127.0.0.1:${port}/`,
    close: () => {
      for (const filler of fillers) filler.destroy();
      child.kill('SIGKILL');
    },
  };
}

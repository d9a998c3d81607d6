import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { readSettings } from '../../src/config/settings.js';
import { HttpWebhookClient } from '../../src/delivery/webhook-client.http.js';
import type { Answered, WebhookRequest, WebhookResponse } from '../../src/delivery/webhook-client.js';
import { Outbound } from '../../src/outbound/outbound.service.js';
import { eventually } from '../support/eventually.js';
import { RawReceiver } from '../support/raw-receiver.js';
import { standingStillAfter, standStill } from '../support/stand-still.js';
import { answer, drip, hang, huge, nonsense, Receiver, redirect, reset } from '../support/receiver.js';

const megabyte = 1024 * 1024;

/** Over connections that are kept open, and on a connection of the call's own: what a receiver sees must not differ. */
const ways = [
  ['that may be repeated', true],
  ['that may not be repeated', false],
] as const;

describe.each(ways)('a call %s', (_way, mayRepeat) => {
  let receiver: Receiver;
  let raw: RawReceiver | undefined;
  let client: HttpWebhookClient;

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

  function newClient(settings: Record<string, string> = {}): HttpWebhookClient {
    return new HttpWebhookClient(new Outbound(readSettings(settings)));
  }

  async function useClient(settings: Record<string, string>): Promise<void> {
    await client.close();
    client = newClient(settings);
  }

  function request(parts: Partial<WebhookRequest> = {}): WebhookRequest {
    const { url } = receiver;
    const headers = { 'content-type': 'application/json' };
    return { url, headers, body: Buffer.from('{}'), timeoutMs: 20_000, mayRepeat, ...parts };
  }

  async function postRaw(text: string): Promise<WebhookResponse> {
    raw = await RawReceiver.start((socket) => socket.end(text));
    return client.post(request({ url: raw.url }));
  }

  it.each([
    ['stays with the first of several addresses while this process stands still for a moment', 20_000, '127.0.0.1'],
    ['leaves the first of several addresses sooner where it has little time', 1000, '127.0.0.2'],
  ])('%s', async (_does, timeoutMs, ip) => {
    raw = await RawReceiver.start((socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'), '0.0.0.0');
    await client.close();
    client = new HttpWebhookClient(new Outbound(readSettings({}), standingStillAfter(['127.0.0.1', '127.0.0.2'])));
    const response = await client.post(request({ url: `http://receiver.test:${raw.port}/`, timeoutMs }));
    expect(response).toMatchObject({ kind: 'answered', status: 204, address: `${ip}:${raw.port}` });
  });

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
    expect(await client.post(request({ url, headers, body }))).toEqual({
      kind: 'answered',
      status: 204,
      headers: {},
      body: '',
      askedDelayMs: null,
      durationMs: expect.any(Number),
      connectMs: expect.any(Number),
      firstByteMs: expect.any(Number),
      address: new URL(receiver.url).host,
    });
    const [received] = receiver.requests;
    expect(received).toMatchObject({ method: 'POST', path: '/webhook/deep%20path/;x=1?a=b&c=%26' });
    expect(received!.text).toBe(body.toString());
    expect(received!.headers).toEqual({
      ...headers,
      host: new URL(receiver.url).host,
      connection: mayRepeat ? 'keep-alive' : 'close',
      'content-length': String(body.length),
    });
  });

  it.each([200, 206, 299, 400, 410, 429, 500, 599])('tells of an answer %i', async (status) => {
    receiver.always(answer(status, { 'retry-after': '7' }, 'why'));
    const [body, askedDelayMs] = status < 300 ? ['', null] : ['why', 7000];
    expect(await client.post(request())).toMatchObject({ kind: 'answered', status, body, askedDelayMs });
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
    ['a head of a megabyte', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(megabyte)}\r\n\r\n`],
    ['a change of protocol', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'],
  ])('fails when the receiver answers with %s', async (_what, text) => {
    expect(await postRaw(text)).toMatchObject({ kind: 'unanswered', wasSent: true });
  });

  it.each([
    ['has less than its length', 'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello'],
    ['has more than its length', 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhello'],
    ['must not be there', 'HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello'],
    ['is announced and is not there', 'HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n'],
    ['has a chunk that is none', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'],
    ['has no last chunk', 'HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n'],
  ])('is answered by a 2xx although its body %s', async (_what, text) => {
    expect(await postRaw(text)).toMatchObject({ kind: 'answered', status: Number(text.slice(9, 12)), body: '' });
    expect(await client.post(request())).toMatchObject({ kind: 'answered' });
  });

  it('is answered by a 2xx that breaks off in its body', async () => {
    raw = await RawReceiver.start((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhe', () => socket.resetAndDestroy());
    });
    expect(await client.post(request({ url: raw.url }))).toMatchObject({ kind: 'answered', status: 200 });
  });

  it('is answered by a 2xx whose body drips, and has its connection closed', async () => {
    raw = await RawReceiver.start((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n');
      const timer = setInterval(() => socket.write('.'), 20);
      socket.on('close', () => clearInterval(timer));
    });
    // Many: the bodies that are read on at the same time are bounded.
    const calls = Array.from({ length: 80 }, () => client.post(request({ url: raw!.url })));
    for (const response of await Promise.all(calls)) expect(response).toMatchObject({ kind: 'answered', status: 200 });
    await eventually(() => raw!.sockets.every(({ destroyed }) => destroyed), 'every connection to be closed');
    expect(raw.received).toHaveLength(80);
  });

  it('is answered by 100 MB, of which most is left unread', async () => {
    receiver.next(huge(100 * megabyte), huge(100 * megabyte, 500));
    expect(await client.post(request())).toMatchObject({ kind: 'answered', status: 200 });
    expect(await client.post(request())).toMatchObject({ kind: 'answered', status: 500, body: '.'.repeat(4096) });
    await eventually(() => receiver.answeredBytes.length === 2, 'both to be over');
    // Beyond what is read there is only what the system buffers between the two, at most 37 MB on Linux.
    for (const bytes of receiver.answeredBytes) expect(bytes).toBeLessThan(50 * megabyte);
  });

  it.each([
    ['100 Continue', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['100 Continue twice', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\nx: y\r\n\r\n'],
    ['102 and 103', 'HTTP/1.1 102 Processing\r\nretry-after: 99\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'],
  ])('does not mistake %s for the answer', async (_what, informational) => {
    raw = await RawReceiver.start((socket) => {
      socket.write(informational);
      socket.write('HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\nno');
    });
    for (let times = 0; times < 3; times++) {
      expect(await client.post(request({ url: raw.url }))).toMatchObject({
        kind: 'answered',
        status: 503,
        askedDelayMs: null,
        headers: { 'content-length': '2' },
        body: 'no',
      });
    }
    // The first way takes 100 for an error, once.
    expect(raw.received).toHaveLength(mayRepeat && informational.includes(' 100 ') ? 4 : 3);
  });

  it('keeps the headers that help, and no others', async () => {
    const answered = await postRaw(
      'HTTP/1.1 503 Busy\r\nServer: nginx\r\nX-Request-Id: 4711\r\nset-cookie: a=b\r\nx-other: 1\r\n' +
        `Via: 1.1 one\r\nVia: 1.1 two\r\nlocation: /${'x'.repeat(1000)}\r\ncontent-length: 0\r\n\r\n`,
    );
    expect((answered as Answered).headers).toEqual({
      server: 'nginx',
      'x-request-id': '4711',
      via: '1.1 one, 1.1 two',
      location: `/${'x'.repeat(499)}`,
      'content-length': '0',
    });
  });

  it('takes a Retry-After date of a receiver that sends no Date by the clock that it was given', async () => {
    await client.close();
    const at = Date.parse('2031-05-06T07:08:09Z');
    client = new HttpWebhookClient(new Outbound(readSettings({})), () => at);
    const response = await postRaw(
      'HTTP/1.1 503 Busy\r\nretry-after: Tue, 06 May 2031 07:09:09 GMT\r\ncontent-length: 0\r\n\r\n',
    );
    expect(response).toMatchObject({ kind: 'answered', status: 503, askedDelayMs: 60_000 });
  });

  it('uses the first of several Retry-After headers', async () => {
    const response = await postRaw(
      'HTTP/1.1 503 Busy\r\nretry-after: 5\r\nRetry-After: 9\r\ncontent-length: 0\r\n\r\n',
    );
    expect(response).toMatchObject({ kind: 'answered', status: 503, askedDelayMs: 5000 });
  });

  it.each([
    ['all of a short body', 'é'.repeat(2048), 'é'.repeat(2048)],
    ['the first 4096 bytes of a long one', 'x'.repeat(5000), 'x'.repeat(4096)],
    ['no half of a character', `${'x'.repeat(4095)}é`, 'x'.repeat(4095)],
    ['what is no UTF-8 as characters that say so', Buffer.from([0x61, 0xff, 0x62]), 'a\ufffdb'],
  ])('keeps of a failure %s', async (_what, sent, body) => {
    receiver.next((_request, response) => response.writeHead(500).end(sent));
    expect(await client.post(request())).toMatchObject({ kind: 'answered', status: 500, body });
  });

  it('keeps of a failure that breaks off, or does not end, what came', async () => {
    expect(await postRaw('HTTP/1.1 500 Oops\r\ncontent-length: 50\r\n\r\nhello')).toMatchObject({
      kind: 'answered',
      status: 500,
      body: 'hello',
    });
    receiver.next(drip(50, 500));
    const response = await client.post(request());
    expect(response).toMatchObject({ kind: 'answered', status: 500, body: expect.stringMatching(/^\.+$/) });
  });

  describe('with a slow receiver', () => {
    const timeoutMs = 400;
    const tooLate = { kind: 'unanswered', reason: 'no answer within 0.4 s', wasSent: true };

    /** By our deadline, not by one of undici's: each of those has a reason of its own. */
    async function expectTooLate(response: Promise<WebhookResponse>): Promise<void> {
      const found = await response;
      expect(found).toMatchObject(tooLate);
      expect(found.durationMs).toBeGreaterThanOrEqual(timeoutMs);
    }

    const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    const answerAndBlock = (socket: Socket) => {
      socket.write('HTTP/1.1 204 No Content\r\n\r\n');
      block(2500);
    };

    it.each([
      ['', answerAndBlock],
      [
        ', which began between the look for overdue calls and what it does',
        (socket: Socket) => {
          stat('.', () => answerAndBlock(socket)); // is called when that has been looked at in the same turn
          block(100);
        },
      ],
    ])('is read although this process was blocked until the time was over%s', async (_when, say) => {
      raw = await RawReceiver.start(say);
      // So much that a busy machine does not use it up before the receiver is connected.
      const answered = await client.post(request({ timeoutMs: 2000, url: raw.url }));
      expect(answered).toMatchObject({ kind: 'answered', status: 204 });
    });

    it('has the rest of its time when this process was blocked until it was over', async () => {
      raw = await RawReceiver.start((socket) => {
        block(2500);
        setTimeout(() => socket.write('HTTP/1.1 204 No Content\r\n\r\n'), 200);
      });
      const answered = await client.post(request({ timeoutMs: 2000, url: raw.url }));
      expect(answered).toMatchObject({ kind: 'answered', status: 204 });
    });

    it('ends when it does not answer at all', async () => {
      receiver.next(hang);
      await expectTooLate(client.post(request({ timeoutMs })));
    });

    it('ends when it stops in the middle of its head', async () => {
      raw = await RawReceiver.start((socket) => socket.write('HTTP/1.1 200 OK\r\nx-slow: '));
      const call = client.post(request({ timeoutMs, url: raw.url }));
      await expectTooLate(call);
      expect(await call).toMatchObject({ firstByteMs: expect.any(Number), address: `127.0.0.1:${raw.port}` });
    });

    it('closes the connection of a call it gave up', async () => {
      raw = await RawReceiver.start(() => {});
      await client.post(request({ timeoutMs, url: raw.url }));
      await eventually(() => raw!.sockets[0]!.destroyed || raw!.sockets[0]!.readableEnded);
      expect(raw.received).toHaveLength(1);
    });

    it('ends when it accepts no connection; the call has not arrived', async () => {
      // A listener whose backlog is full: the system of the receiver does not answer.
      const full = await fullListener();
      try {
        const response = await client.post(request({ timeoutMs, url: full.url }));
        const { host } = new URL(full.url);
        expect(response).toMatchObject({ ...tooLate, wasSent: false, connectMs: null, address: host });
        // Nor does it go on connecting.
        await eventually(() => !process.getActiveResourcesInfo().includes('TCPConnectWrap'));
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
      isOurs: false,
      reason: expect.stringContaining('ECONNREFUSED'),
      connectMs: null,
      firstByteMs: null,
      address: new URL(receiver.url).host,
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

  it('costs its receiver nothing when it waits for names that nobody answers for, however little time it has', async () => {
    const asked: string[] = [];
    const silent = new HttpWebhookClient(
      new Outbound(readSettings({ UV_THREADPOOL_SIZE: '16' }), (name) => void asked.push(name)),
    );
    const post = (name: string, timeoutMs: number) =>
      silent.post(request({ url: `http://${name}.silent.test/`, timeoutMs }));
    const others = [post('a', 20_000), post('b', 20_000)];
    await eventually(() => asked.length === 2);
    expect(await post('c', 200)).toMatchObject({ kind: 'postponed', reason: expect.stringMatching(/^LOOKUP_BUSY/) });
    expect(asked).toEqual(['a.silent.test', 'b.silent.test']);
    silent.abandonAll();
    await Promise.all(others);
    await silent.close();
  });

  it('fails when the receiver speaks no TLS; the call has not arrived', async () => {
    const trouble = createServer((socket) => socket.end('220 mail.example.org ESMTP\r\n')).listen(0, '127.0.0.1');
    await once(trouble, 'listening');
    const url = `https://127.0.0.1:${(trouble.address() as AddressInfo).port}/`;
    expect(await client.post(request({ url }))).toMatchObject({ kind: 'unanswered', wasSent: false, connectMs: null });
    trouble.close();
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
        const address = expect.stringMatching(/127\.0\.0\.1|::1|7f00:1|169\.254\.169\.254/);
        expect(response).toMatchObject({ kind: 'unanswered', wasSent: false, isOurs: true, address });
        expect((response as { reason: string }).reason).toMatch(
          /not one that callbacks may use.*CALLBACK_ALLOWED_NETWORKS/,
        );
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
    receiver.requests.length = 0;
    expect(await client.post(request())).toMatchObject({ kind: 'abandoned', wasSent: false });
    expect(receiver.requests).toEqual([]);
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

describe('a connection of a call’s own', () => {
  it.each([
    ['is not used where others may have sent the next one meanwhile', true, 'postponed'],
    ['is used late rather than never where no order is kept', false, 'answered'],
  ])('that was being made while this process stood still %s', async (_, mayBeOvertaken, kind) => {
    const client = new HttpWebhookClient(new Outbound(readSettings({})));
    const raw = await RawReceiver.start((socket) => socket.end('HTTP/1.1 204 No Content\r\n\r\n'));
    const { url, received, sockets } = raw;
    const request = { url, headers: {}, body: Buffer.from('{}'), timeoutMs: 20_000, mayRepeat: false, mayBeOvertaken };
    const call = client.post(request);
    standStill(4500);
    expect(await call).toMatchObject({ kind });
    await eventually(() => sockets.length === 1 && sockets[0]!.closed, 'the connection to be closed');
    expect(received).toHaveLength(kind === 'answered' ? 1 : 0);
    await client.close();
    await raw.stop();
  });

  it('is closed when its call is answered, although the receiver reads no further', async () => {
    const client = new HttpWebhookClient(new Outbound(readSettings({})));
    let received = 0;
    let isClosed = false;
    let readOn = () => {};
    const server = createServer((socket) => {
      socket.once('data', () => {
        socket.pause();
        socket.on('data', ({ length }) => (received += length));
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      });
      socket.on('error', () => {}).on('close', () => (isClosed = true));
      readOn = () => socket.resume();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const body = Buffer.alloc(64 * megabyte);
    const request = { url, headers: {}, body, timeoutMs: 20_000, mayRepeat: false };
    expect(await client.post(request)).toMatchObject({ kind: 'answered', status: 200 });
    readOn();
    await eventually(() => isClosed, 'the connection to be closed');
    // Of all the rest only what the systems had buffered between the two.
    expect(received).toBeLessThan(50 * megabyte);
    await client.close();
    server.close();
  });
});

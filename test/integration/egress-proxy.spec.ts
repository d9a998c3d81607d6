import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import dns from 'node:dns';
import { once } from 'node:events';
import { createServer } from 'node:https';
import { createServer as createTcpServer, type AddressInfo, type LookupFunction } from 'node:net';
import { startNameServer, type NameServer } from '../../scripts/address-guard/name-server.mjs';
import { readSettings } from '../../src/config/settings.js';
import { Authorizations } from '../../src/credentials/authorizations.service.js';
import { verbatim } from '../../src/credentials/credentials.js';
import { systemClock } from '../../src/infra/clock.js';
import type { LedgerClock } from '../../src/liveness/ledger-clock.service.js';
import { HttpWebhookClient } from '../../src/delivery/webhook-client.http.js';
import type { WebhookRequest } from '../../src/delivery/webhook-client.js';
import { Outbound, type TlsIdentity } from '../../src/outbound/outbound.service.js';
import { CallbackProof } from '../../src/subscriptions/callback-proof.service.js';
import { ConnectProxy, drop, hang, refuse, tunnel } from '../support/connect-proxy.js';
import { eventually } from '../support/eventually.js';
import { answer, Receiver, reset } from '../support/receiver.js';
import { standingStillAfter } from '../support/stand-still.js';
import { certificate, key } from '../support/tls-identity.js';

/** Of no machine; the proxy leads it to this one. */
const ledgerClock = { now: Date.now } as LedgerClock;
const address = '192.0.2.7';

/** Trusts the certificate of the tests' receivers. */
class Trusting extends Outbound {
  override connectorFor(tls: TlsIdentity = {}, timeoutMs = 0) {
    return super.connectorFor({ authority: certificate, ...tls }, timeoutMs);
  }
}

describe.each([
  ['kept connections', true],
  ['a connection of its own', false],
])('a call through the egress proxy, over %s', (_way, mayRepeat) => {
  let names: NameServer;
  let receiver: Receiver;
  let proxy: ConnectProxy;
  let client: HttpWebhookClient | undefined;

  beforeAll(async () => {
    names = await startNameServer();
  });
  afterAll(() => names.stop());

  beforeEach(async () => {
    [receiver, proxy] = await Promise.all([Receiver.start(), ConnectProxy.start()]);
    receiver.always(answer(204));
    names.names.set('receiver.test', () => [address]);
    useProxy();
  });
  afterEach(async () => {
    await client?.close();
    await Promise.all([receiver.stop(), proxy.stop()]);
  });

  const outboundWith = (settings: Record<string, string> = {}) =>
    new Trusting(
      readSettings({
        CALLBACK_NETWORKS: 'public',
        CALLBACK_ALLOWED_NETWORKS: '192.0.2.0/24',
        EGRESS_PROXY_URL: proxy.url,
        ...settings,
      }),
      names.lookUp,
    );

  function useProxy(settings: Record<string, string> = {}): void {
    client = new HttpWebhookClient(outboundWith(settings));
  }

  const portOf = (url: string) => new URL(url).port;
  const urlOf = (host = 'receiver.test', { url } = receiver) => `http://${host}:${portOf(url)}/webhook`;

  const post = (parts: Partial<WebhookRequest> = {}) =>
    client!.post({ url: urlOf(), headers: {}, body: Buffer.from('{}'), timeoutMs: 20_000, mayRepeat, ...parts });

  it('goes to the address that was checked, by CONNECT, and under the name of the receiver', async () => {
    for (let times = 0; times < 3; times++) {
      expect(await post()).toMatchObject({
        kind: 'answered',
        status: 204,
        address: `${address}:${portOf(receiver.url)}`,
      });
    }
    const authority = `${address}:${portOf(receiver.url)}`;
    expect(new Set(proxy.asked.map((asked) => asked.authority))).toEqual(new Set([authority]));
    expect(proxy.asked[0]!.headers.host).toBe(authority);
    expect(receiver.requests.map(({ headers }) => headers.host)).toEqual(
      Array.from({ length: 3 }, () => `receiver.test:${portOf(receiver.url)}`),
    );
    expect(proxy.asked.length < 3).toBe(mayRepeat);
  });

  it('speaks TLS with the receiver, by its name, over the tunnel', async () => {
    const secure = createServer({ cert: certificate, key }, (_, response) => response.writeHead(204).end());
    secure.listen(0, '127.0.0.1');
    await once(secure, 'listening');
    const { port } = secure.address() as AddressInfo;
    names.names.set('elsewhere.test', () => [address]);
    expect(await post({ url: `https://receiver.test:${port}/` })).toMatchObject({ kind: 'answered', status: 204 });
    expect(await post({ url: `https://elsewhere.test:${port}/` })).toMatchObject({
      kind: 'unanswered',
      reason: expect.stringContaining('ERR_TLS_CERT_ALTNAME_INVALID'),
      isOurs: false,
      wasSent: false,
    });
    expect(proxy.asked.map((asked) => asked.authority)).toEqual([`${address}:${port}`, `${address}:${port}`]);
    await client!.close();
    await eventually(() => proxy.sockets.every(({ destroyed }) => destroyed), 'the tunnels to be closed');
    secure.close();
  });

  it('stays with the first of several addresses of the proxy while this process stands still for a moment', async () => {
    useProxy({ EGRESS_PROXY_URL: proxy.url.replace('127.0.0.1', 'proxy.test') });
    const found = standingStillAfter(['127.0.0.1', '127.0.0.2']) as typeof dns.lookup;
    const lookup = vi.spyOn(dns, 'lookup').mockImplementation(found);
    const answered = await post().finally(() => lookup.mockRestore());
    expect(answered).toMatchObject({ kind: 'answered', status: 204 });
  });

  it('shows its credentials to the proxy, and to nobody else', async () => {
    useProxy({ EGRESS_PROXY_URL: proxy.url.replace('//', '//heraut:p%40ss%20word@') });
    await post();
    const expected = `Basic ${Buffer.from('heraut:p@ss word').toString('base64')}`;
    expect(proxy.asked.at(-1)!.headers['proxy-authorization']).toBe(expected);
    expect(receiver.requests[0]!.headers).not.toHaveProperty('proxy-authorization');
    proxy.behaviour = refuse(407);
    const refused = await post({ url: urlOf('receiver.test.'), timeoutMs: 5000 });
    names.names.set('other.test', () => [address]);
    const again = await post({ url: urlOf('other.test') });
    for (const response of [refused, again]) expect(JSON.stringify(response)).not.toMatch(/p@ss|p%40ss|Basic|heraut:/);
    expect(again).toMatchObject({ kind: 'postponed', reason: expect.stringContaining('407') });
  });

  it.each([400, 403, 404, 407, 500])('has failed by our own doing where the proxy answers %i', async (status) => {
    proxy.behaviour = refuse(status);
    const reason = `EGRESS_PROXY: the egress proxy failed: it answers ${status} to CONNECT`;
    expect(await post()).toMatchObject({ kind: 'postponed', reason, wasSent: false });
    expect(proxy.asked).toHaveLength(1);
    expect(receiver.requests).toEqual([]);
  });

  it('knows for how long the proxy has failed', async () => {
    proxy.behaviour = refuse(500);
    expect(await post()).toMatchObject({ kind: 'postponed', forMs: expect.any(Number) });
    const [first, second] = [await post(), await post()] as [{ forMs: number }, { forMs: number }];
    expect(second.forMs).toBeGreaterThan(first.forMs);
    proxy.behaviour = tunnel;
    expect(await post()).toMatchObject({ kind: 'answered' });
    await client!.close(); // no connection of before is left
    useProxy();
    proxy.behaviour = refuse(500);
    expect(await post()).toMatchObject({ kind: 'postponed', forMs: expect.any(Number) });
  });

  it.each([502, 503, 504])('has failed by the receiver’s doing where the proxy says so (%i)', async (status) => {
    proxy.behaviour = refuse(status);
    const reason = expect.stringMatching(/UNREACHABLE_BY_PROXY.*cannot reach the receiver/);
    expect(await post()).toMatchObject({ kind: 'unanswered', reason, wasSent: false, isOurs: false });
  });

  it('tries another address of the receiver where the proxy cannot reach the first', async () => {
    names.names.set('receiver.test', () => ['192.0.2.1', address]);
    proxy.behaviour = (socket, authority) =>
      authority.startsWith('192.0.2.1:') ? refuse(502)(socket, authority) : tunnel(socket, authority);
    expect(await post()).toMatchObject({ kind: 'answered', address: `${address}:${portOf(receiver.url)}` });
    expect(proxy.asked).toHaveLength(2);
  });

  it.each([
    ['drops the connection', drop],
    ['speaks no HTTP', (socket) => void socket.end('220 mail.example.org ESMTP\r\n')],
    ['never ends its head', (socket) => void socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}`)],
  ] satisfies [string, typeof drop][])('has failed by our own doing where the proxy %s', async (_what, behaviour) => {
    proxy.behaviour = behaviour;
    const reason = expect.stringMatching(/^EGRESS_PROXY: the egress proxy failed: \w+$/);
    expect(await post()).toMatchObject({ kind: 'postponed', reason, wasSent: false });
    expect(proxy.asked).toHaveLength(1);
  });

  it('has failed by our own doing where no proxy listens', async () => {
    useProxy({ EGRESS_PROXY_URL: 'http://127.0.0.1:1' });
    const reason = 'EGRESS_PROXY: the egress proxy failed: ECONNREFUSED';
    expect(await post()).toMatchObject({ kind: 'postponed', reason, wasSent: false });
  });

  it('is given up in time where the proxy hangs, and costs the proxy one connection', async () => {
    proxy.behaviour = hang;
    const reason = 'no answer of the egress proxy within 2 s';
    expect(await post({ timeoutMs: 2000 })).toMatchObject({ kind: 'postponed', reason, wasSent: false });
    await eventually(() => proxy.sockets.every(({ destroyed, readableEnded }) => destroyed || readableEnded));
    expect(proxy.asked).toHaveLength(1);
  });

  it('is the receiver’s failure where the proxy hangs for that receiver alone', async () => {
    names.names.set('gone.test', () => ['192.0.2.66']);
    proxy.behaviour = (socket, authority) =>
      authority.startsWith('192.0.2.66:') ? undefined : tunnel(socket, authority);
    const outbound = outboundWith();
    client = new HttpWebhookClient(outbound);
    const gone = post({ url: urlOf('gone.test'), timeoutMs: 5000 });
    await eventually(() => proxy.asked.length === 1);
    expect(await post()).toMatchObject({ kind: 'answered' });
    expect(await gone).toMatchObject({ kind: 'unanswered', reason: 'no answer within 5 s', isOurs: false });
    await eventually(() => proxy.sockets[0]!.readableEnded || proxy.sockets[0]!.destroyed);
    expect(outbound.proxyFailingMs(`192.0.2.66:${portOf(receiver.url)}`)).toBe(0);
  });

  it('costs its receiver nothing when it waits for names that nobody answers for', async () => {
    const asked: string[] = [];
    const settings = readSettings({ EGRESS_PROXY_URL: proxy.url, UV_THREADPOOL_SIZE: '16' });
    client = new HttpWebhookClient(new Trusting(settings, (name) => void asked.push(name)));
    const others = ['a', 'b'].map((name) => post({ url: urlOf(`${name}.silent.test`) }));
    await eventually(() => asked.length === 2);
    const reason = expect.stringMatching(/^LOOKUP_BUSY/) as string;
    expect(await post({ url: urlOf('c.silent.test'), timeoutMs: 200 })).toMatchObject({ kind: 'postponed', reason });
    client.abandonAll();
    await Promise.all(others);
  });

  it('fails, and nothing else, where this version of Node refuses the certificate of this side', async () => {
    const tls = { id: 'refused', expiresAt: null, certificate: 'none', key: 'none' };
    const url = `https://receiver.test:${portOf(receiver.url)}/`;
    expect(await post({ url, tls })).toMatchObject({ kind: 'unanswered', wasSent: false });
    expect(proxy.asked).toHaveLength(1);
    await eventually(() => proxy.sockets.every(({ destroyed }) => destroyed), 'the tunnel to be closed');
  });

  it('is the receiver’s failure where that resets the tunnel', async () => {
    receiver.next(reset);
    expect(await post()).toMatchObject({ kind: 'unanswered', wasSent: true, isOurs: false });
  });

  it('is ended when the process stops, while the proxy hangs', async () => {
    proxy.behaviour = hang;
    const call = post();
    await eventually(() => proxy.asked.length === 1);
    client!.abandonAll();
    expect(await call).toMatchObject({ kind: 'abandoned', wasSent: false });
  });

  describe('under the address guard', () => {
    it('never asks the proxy for an address that callbacks may not use', async () => {
      for (const host of [
        '10.0.0.1',
        '[::ffff:10.0.0.1]',
        '0xa000001',
        '169.254.169.254',
        'private.test',
        'none.test',
      ]) {
        names.names.set('private.test', () => ['10.0.0.1', '::1']);
        expect(await post({ url: urlOf(host) })).toMatchObject({ kind: 'unanswered', wasSent: false });
      }
      expect(proxy.asked).toEqual([]);
    });

    it('asks it only for those of a name that they may use, also when the answers change', async () => {
      let looks = 0;
      names.names.set('changing.test', () => (looks++ % 4 < 2 ? ['10.0.0.1', address] : ['10.0.0.1']));
      const kinds = [];
      for (let times = 0; times < 4; times++) {
        useProxy();
        kinds.push((await post({ url: urlOf('changing.test') })).kind);
        await client!.close();
      }
      expect(kinds.sort()).toEqual(['answered', 'answered', 'unanswered', 'unanswered']);
      expect(new Set(proxy.asked.map((asked) => asked.authority))).toEqual(
        new Set([`${address}:${portOf(receiver.url)}`]),
      );
    });
  });

  describe('with exceptions', () => {
    it('does not go to the proxy for a name on the list, nor for one below it', async () => {
      useProxy({ EGRESS_PROXY_EXCEPTIONS: 'internal.test', CALLBACK_ALLOWED_NETWORKS: '127.0.0.0/8' });
      names.names.set('internal.test', () => ['127.0.0.1']);
      names.names.set('a.internal.test', () => ['127.0.0.1']);
      for (const host of ['internal.test', 'a.internal.test'])
        expect(await post({ url: urlOf(host) })).toMatchObject({
          kind: 'answered',
          address: new URL(receiver.url).host,
        });
      expect(proxy.asked).toEqual([]);
    });

    it('does not go to the proxy for loopback, nor for an address on the list', async () => {
      useProxy({ EGRESS_PROXY_EXCEPTIONS: '192.0.2.0/24', CALLBACK_ALLOWED_NETWORKS: '127.0.0.0/8,192.0.2.0/24' });
      expect(await post({ url: receiver.url })).toMatchObject({ kind: 'answered' });
      names.names.set('here.test', () => ['127.0.0.1']);
      expect(await post({ url: urlOf('here.test') })).toMatchObject({ kind: 'answered' });
      await post({ url: urlOf(), timeoutMs: 100 }); // to an address of no machine
      expect(proxy.asked).toEqual([]);
    });

    it('does not go to the proxy for loopback or an address on the list that is written as IPv6', async () => {
      useProxy({ EGRESS_PROXY_EXCEPTIONS: '192.0.2.0/24', CALLBACK_ALLOWED_NETWORKS: '127.0.0.0/8,192.0.2.0/24' });
      names.names.set('mapped.test', () => ['::ffff:127.0.0.1']);
      for (const host of ['[::ffff:127.0.0.1]', 'mapped.test'])
        expect(await post({ url: urlOf(host) })).toMatchObject({
          kind: 'answered',
          address: new URL(receiver.url).host,
        });
      await post({ url: urlOf(`[::ffff:${address}]`), timeoutMs: 100 }); // to an address of no machine
      expect(proxy.asked).toEqual([]);
    });

    it('tries each address that is called without the proxy, and then those behind it', async () => {
      useProxy({ EGRESS_PROXY_EXCEPTIONS: '192.0.2.128/25', CALLBACK_ALLOWED_NETWORKS: '127.0.0.0/8,192.0.2.0/24' });
      names.names.set('refusing.test', () => ['127.0.0.2', '127.0.0.1']);
      expect(await post({ url: urlOf('refusing.test') })).toMatchObject({
        kind: 'answered',
        address: new URL(receiver.url).host,
      });
      expect(proxy.asked).toEqual([]);
      names.names.set('both.test', () => ['127.0.0.2', address]);
      expect(await post({ url: urlOf('both.test') })).toMatchObject({ kind: 'answered' });
      expect(proxy.asked.map(({ authority }) => authority)).toEqual([`${address}:${portOf(receiver.url)}`]);
    });

    it('tries no other address where one has accepted the connection, and TLS fails', async () => {
      let connections = 0;
      const closing = createTcpServer((socket) => void (connections++, socket.destroy()));
      closing.listen(0, '0.0.0.0');
      await once(closing, 'listening');
      const { port } = closing.address() as AddressInfo;
      useProxy({ CALLBACK_ALLOWED_NETWORKS: '127.0.0.0/8' });
      names.names.set('closing.test', () => ['127.0.0.2', '127.0.0.1']);
      const url = `https://closing.test:${port}/`;
      expect(await post({ url })).toMatchObject({ kind: 'unanswered', address: `127.0.0.2:${port}` });
      expect(connections).toBe(1);
      closing.close();
    });

    it('asks the proxy for IPv4 where that is written as IPv6', async () => {
      expect(await post({ url: urlOf(`[::ffff:${address}]`) })).toMatchObject({ kind: 'answered' });
      expect(proxy.asked.map(({ authority }) => authority)).toEqual([`${address}:${portOf(receiver.url)}`]);
    });
  });

  describe('where the proxy itself wants TLS', () => {
    let secured: ConnectProxy;

    beforeEach(async () => {
      secured = await ConnectProxy.start('https');
    });
    afterEach(() => secured.stop());

    it('goes through it, also with TLS to the receiver', async () => {
      const secure = createServer({ cert: certificate, key }, (_, response) => response.writeHead(204).end());
      secure.listen(0, '127.0.0.1');
      await once(secure, 'listening');
      const { port } = secure.address() as AddressInfo;
      trustEverything(true);
      try {
        useProxy({ EGRESS_PROXY_URL: secured.url });
        expect(await post()).toMatchObject({ kind: 'answered', status: 204 });
        expect(await post({ url: `https://receiver.test:${port}/` })).toMatchObject({ kind: 'answered', status: 204 });
        expect(secured.asked.length).toBe(2);
      } finally {
        trustEverything(false);
        secure.close();
      }
    });

    it('is named to it in TLS, so that it can show the certificate of that name', async () => {
      const found: LookupFunction = (_name, _options, callback) =>
        callback(null, [{ address: '127.0.0.1', family: 4 }]);
      const lookup = vi.spyOn(dns, 'lookup').mockImplementation(found as typeof dns.lookup);
      trustEverything(true);
      try {
        useProxy({ EGRESS_PROXY_URL: secured.url.replace('127.0.0.1', 'proxy.test') });
        expect(await post()).toMatchObject({ kind: 'answered', status: 204 });
        expect(secured.namesInTls).toEqual(['proxy.test']);
      } finally {
        trustEverything(false);
        lookup.mockRestore();
      }
    });

    it('asks for a client certificate, if it does, in its own name and not in the receiver’s', async () => {
      trustEverything(true);
      try {
        useProxy({ EGRESS_PROXY_URL: secured.url });
        receiver.next(reset);
        const reason = expect.not.stringContaining('client certificate') as string;
        expect(await post()).toMatchObject({ kind: 'unanswered', reason, isUntrusted: false });
      } finally {
        trustEverything(false);
      }
    });

    it('has failed by our own doing where the proxy is not trusted', async () => {
      useProxy({ EGRESS_PROXY_URL: secured.url });
      const reason = 'EGRESS_PROXY: the egress proxy failed: DEPTH_ZERO_SELF_SIGNED_CERT';
      expect(await post()).toMatchObject({ kind: 'postponed', reason, wasSent: false });
    });
  });

  it('says nothing of a callback that is to be proved', async () => {
    proxy.behaviour = refuse(403);
    const proof = new CallbackProof(
      { settings: readSettings({}) },
      outboundWith(),
      new Authorizations(outboundWith(), systemClock, ledgerClock),
      ledgerClock,
    );
    await expect(
      proof.prove({ callbackUrl: urlOf(), auth: 'x', credentials: verbatim, isUrlNew: true, signingKeys: [] }),
    ).rejects.toMatchObject({
      status: 503,
      detail: 'The egress proxy of this server fails.',
    });
    // The token is the first call where the URL stays.
    const credentials = {
      ...verbatim,
      kind: 'oauth2' as const,
      tokenUrl: urlOf(),
      clientId: 'client',
      clientSecret: 'secret',
      scope: null,
      clientAuthentication: 'basic' as const,
      tokenTls: null,
    };
    const logged = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
    await expect(proof.prove({ callbackUrl: urlOf(), auth: '', credentials, isUrlNew: false })).rejects.toMatchObject({
      status: 503,
    });
    logged.mockRestore();
    proxy.behaviour = tunnel;
    receiver.next(answer(401), answer(204));
    await expect(
      proof.prove({ callbackUrl: urlOf(), auth: 'x', credentials: verbatim, isUrlNew: true, signingKeys: [] }),
    ).resolves.toBeUndefined();
  });
});

/** Of this process: a certificate authority to trust could be named only before it started. */
function trustEverything(isOn: boolean): void {
  if (isOn) process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  else delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
}

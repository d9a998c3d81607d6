import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LookupFunction, Socket } from 'node:net';
import { readSettings } from '../../src/config/settings.js';
import { callsSentAgain } from '../../src/delivery/delivery.counters.js';
import { HttpWebhookClient } from '../../src/delivery/webhook-client.http.js';
import { Outbound } from '../../src/outbound/outbound.service.js';
import type { WebhookRequest, WebhookResponse } from '../../src/delivery/webhook-client.js';
import { eventually } from '../support/eventually.js';
import { RawReceiver } from '../support/raw-receiver.js';

const noContent = 'HTTP/1.1 204 No Content\r\n\r\n';

describe('connections that are kept open', () => {
  let raw: RawReceiver | undefined;
  let client: HttpWebhookClient;

  beforeEach(() => {
    client = new HttpWebhookClient(new Outbound(readSettings({})));
  });
  afterEach(async () => {
    await client.close();
    await raw?.stop();
    raw = undefined;
  });

  const post = (parts: Partial<WebhookRequest> = {}) =>
    client.post({ url: raw!.url, headers: {}, body: Buffer.from('{}'), timeoutMs: 20_000, mayRepeat: true, ...parts });

  const sentAgain = async (lost: string) =>
    (await callsSentAgain.get()).values.find(({ labels }) => labels.lost === lost)?.value ?? 0;

  it('are used again, and a call says whether it was on a new one', async () => {
    raw = await RawReceiver.start((socket) => socket.write(noContent));
    const responses: WebhookResponse[] = [];
    for (let times = 0; times < 10; times++) responses.push(await post());
    expect(raw.received).toHaveLength(10);
    // A call from within the answer of the one before finds its connection not free yet.
    expect(raw.sockets.length).toBeLessThanOrEqual(2);
    expect(responses.filter(({ connectMs }) => connectMs !== null)).toHaveLength(raw.sockets.length);
    for (const { firstByteMs, durationMs, address } of responses) {
      expect(address).toBe(`127.0.0.1:${raw.port}`);
      expect(firstByteMs).toBeLessThanOrEqual(durationMs);
    }
  });

  it('are used again after a failure whose answer was read', async () => {
    raw = await RawReceiver.start((socket) =>
      socket.write('HTTP/1.1 500 Oops\r\ncontent-length: 5000\r\n\r\n' + 'x'.repeat(5000)),
    );
    for (let times = 0; times < 10; times++) await post();
    expect(raw.sockets.length).toBeLessThanOrEqual(3);
  });

  it('carry no call that may not be repeated', async () => {
    raw = await RawReceiver.start((socket) => socket.write(noContent));
    for (let times = 0; times < 3; times++) await post({ mayRepeat: times % 2 === 0 });
    expect(raw.sockets.length).toBeGreaterThanOrEqual(2);
    expect(raw.received.map((text) => /connection: (\S+)/i.exec(text)?.[1])).toEqual([
      'keep-alive',
      'close',
      'keep-alive',
    ]);
  });

  /** Answers the first request over a connection, and does that with the second one. */
  const onceThen = (say: (socket: Socket) => void) =>
    RawReceiver.start((socket, count) => (count === 1 ? void socket.write(noContent) : say(socket)));

  /** Until a call was sent over a connection that had carried another. */
  async function postUntilKept(parts: Partial<WebhookRequest> = {}): Promise<WebhookResponse> {
    await post();
    return eventually(async () => {
      const response = await post(parts);
      const wasKept = raw!.received.length > raw!.sockets.length;
      return wasKept ? response : undefined;
    });
  }

  it.each<[string, (socket: Socket) => void]>([
    ['closed', (socket) => socket.end()],
    ['reset', (socket) => socket.resetAndDestroy()],
  ])('that turn out to be %s cost nothing: the call is sent again at once on a new one', async (_what, close) => {
    raw = await onceThen(close);
    const before = await sentAgain('closed');
    const response = await postUntilKept();
    expect(response).toMatchObject({ kind: 'answered', status: 204, connectMs: expect.any(Number) });
    expect(await sentAgain('closed')).toBe(before + 1);
  });

  it('that a receiver closes soon after each answer cost nothing', async () => {
    raw = await RawReceiver.start((socket) => {
      socket.write(noContent);
      setTimeout(() => socket.end(), 2);
    });
    for (let times = 0; times < 200; times++) {
      expect(await post()).toMatchObject({ kind: 'answered', status: 204 });
      await new Promise((resolve) => setTimeout(resolve, times % 4));
    }
  });

  it('that are found reset before a byte is written cost nothing either', async () => {
    raw = await RawReceiver.start((socket) => socket.write(noContent));
    await post();
    const before = await sentAgain('closed');
    const response = await eventually(async () => {
      // After a timer sockets are read first, and only then undici writes to a connection that was used before.
      await new Promise((resolve) => setTimeout(resolve));
      const called = post();
      for (const socket of raw!.sockets) socket.resetAndDestroy();
      const response = await called;
      return response.kind !== 'answered' || (await sentAgain('closed')) > before ? response : undefined;
    });
    expect(response).toMatchObject({ kind: 'answered', status: 204, connectMs: expect.any(Number) });
    expect(await sentAgain('closed')).toBe(before + 1);
  });

  it('that are closed in the middle of an answer have failed', async () => {
    raw = await onceThen((socket) => socket.end('HTTP/1.1 204 No'));
    const before = await sentAgain('closed');
    expect(await postUntilKept()).toMatchObject({ kind: 'unanswered', wasSent: true });
    expect(await sentAgain('closed')).toBe(before);
  });

  it('are replaced once a call: what happens on the new one is what came of it', async () => {
    let isOver = false;
    raw = await RawReceiver.start((socket, count) => {
      if (count === 2) isOver = true;
      if (isOver) socket.resetAndDestroy();
      else socket.write(noContent);
    });
    const before = await sentAgain('closed');
    expect(await postUntilKept()).toMatchObject({ kind: 'unanswered', wasSent: true });
    expect(await sentAgain('closed')).toBe(before + 1);
  });

  it('do not give a call more time than it has', async () => {
    let isOver = false;
    raw = await RawReceiver.start((socket, count) => {
      if (count === 2) isOver = true;
      if (!isOver) socket.write(noContent);
      else if (count === 2) setTimeout(() => socket.resetAndDestroy(), 200);
    });
    const response = await postUntilKept({ timeoutMs: 400 });
    expect(response).toMatchObject({ kind: 'unanswered', reason: 'no answer within 0.4 s', wasSent: true });
  });

  it('are used for so long, as their last call tells the receiver, and a name that leads elsewhere by then is followed', async () => {
    raw = await RawReceiver.start((socket) => socket.write(noContent), '0.0.0.0');
    let address = '127.0.0.1';
    const found: LookupFunction = (_name, _options, callback) =>
      process.nextTick(() => callback(null, [{ address, family: 4 }]));
    await client.close();
    client = new HttpWebhookClient(new Outbound(readSettings({}), found), Date.now, 0);
    const url = `http://receiver.test:${raw.port}/`;
    await postUntilKept({ url });
    expect(raw.received.at(-1)).toMatch(/\r\nconnection: close\r\n/);
    address = '127.0.0.2';
    await eventually(async () => (await post({ url })).address === `127.0.0.2:${raw!.port}`);
    // None is used for a third one.
    expect(raw.received.length).toBeLessThanOrEqual(2 * raw.sockets.length);
  });

  it('are no longer used for an origin that sends 100 Continue, nor is a call to it sent again', async () => {
    raw = await RawReceiver.start((socket) => socket.write(`HTTP/1.1 100 Continue\r\n\r\n${noContent}`));
    const before = await sentAgain('informational');
    for (let times = 0; times < 5; times++) expect(await post()).toMatchObject({ kind: 'answered', status: 204 });
    expect(raw.received).toHaveLength(6);
    expect(await sentAgain('informational')).toBe(before + 1);
  });

  it('tell the address in brackets where it is one of IPv6', async () => {
    raw = await RawReceiver.start((socket) => socket.write(noContent), '::1');
    const url = `http://[::1]:${raw.port}/`;
    for (const mayRepeat of [true, false])
      expect(await post({ url, mayRepeat })).toMatchObject({ kind: 'answered', address: `[::1]:${raw.port}` });
  });
});

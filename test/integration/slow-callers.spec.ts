import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { eventually } from '../support/eventually.js';
import { bareHttpServer } from '../support/http-server.js';

const limits = { headers: 150, request: 300, answer: 150, lastAnswer: 50, lookEvery: 20 };
const largeAnswer = Buffer.alloc(64 * 1024 * 1024, 'x');

describe('a slow caller', () => {
  let fastify: FastifyInstance;
  let sockets: Socket[];

  beforeAll(async () => {
    fastify = bareHttpServer({ limits });
    fastify.get('/large', () => largeAnswer);
    fastify.post('/echo', () => 'read');
    await fastify.listen({ port: 0, host: '127.0.0.1' });
  });

  afterAll(() => fastify.close());

  beforeEach(() => {
    sockets = [];
  });

  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await allGone();
  });

  /** @param options `allowHalfOpen`: a caller that keeps its half of the connection when the server ends the other */
  function open(options: { allowHalfOpen?: boolean } = {}): { socket: Socket; answer: () => string } {
    const { port } = fastify.server.address() as AddressInfo;
    const socket = connect({ port, host: '127.0.0.1', ...options });
    socket.on('error', () => {}); // reset by the server
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1', 0, 1000)));
    sockets.push(socket);
    return { socket, answer: () => answer };
  }

  /** Writes a few bytes of `text` again and again, for ever. */
  function drip(socket: Socket, text: string): void {
    const timer = setInterval(() => socket.writable && socket.write(text), 10);
    socket.once('close', () => clearInterval(timer));
  }

  const connections = () =>
    new Promise<number>((resolve, reject) =>
      fastify.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );
  const allGone = () => eventually(async () => (await connections()) === 0, 'the connection to be cut');

  const tooLong = /^HTTP\/1\.1 408 Request Timeout\r\n[^]*content-security-policy: [^]*"code":"request_timeout"/i;

  /** A request that the process reads later than its headers may take, since it was busy. */
  async function sendUnread(text: string): Promise<() => string> {
    const connected = once(fastify.server, 'connection');
    const { socket, answer } = open();
    await connected;
    socket.write(text);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * limits.headers);
    return answer;
  }

  it('is none whose request lay unread because the process was busy', async () => {
    const answer = await sendUnread(
      'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}',
    );
    await eventually(() => answer() !== '', 'the answer');
    expect(answer()).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('is one whose headers lay unread, and who does not send the rest', async () => {
    const answer = await sendUnread('POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200\r\n\r\n{');
    await eventually(() => tooLong.test(answer()), 'the answer');
  });

  it('that sends nothing is cut', async () => {
    const { answer } = open();
    await eventually(() => tooLong.test(answer()), 'the answer');
    await allGone();
  });

  it('that drips its headers is cut', async () => {
    const { socket, answer } = open();
    socket.write('GET /echo HTTP/1.1\r\nHost: x\r\n');
    drip(socket, 'a: b\r\n');
    await eventually(() => tooLong.test(answer()), 'the answer');
    await allGone();
  });

  it('that drips its body is cut', async () => {
    const { socket, answer } = open();
    socket.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\n');
    drip(socket, 'x');
    await eventually(() => tooLong.test(answer()), 'the answer');
    await allGone();
  });

  it('that goes on with a body that was refused is cut, without a second answer', async () => {
    const { socket, answer } = open();
    const written = 'x'.repeat(1024 * 1024);
    const write = () => void (socket.writable && socket.write(written, write));
    socket.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1000000000000\r\n\r\n');
    await eventually(() => /^HTTP\/1\.1 413 [^]*"code":"payload_too_large"/.test(answer()), 'the answer');
    write();
    await allGone();
    expect(answer().split('HTTP/1.1')).toHaveLength(2);
  });

  it('that ignores the end of the connection is cut too', async () => {
    const { socket } = open({ allowHalfOpen: true });
    socket.write('POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n');
    await once(socket, 'end');
    expect(socket.writable).toBe(true);
    await allGone();
  });

  it('that does not read its answer is cut', async () => {
    const connected = once(fastify.server, 'connection');
    const { socket } = open();
    socket.pause();
    socket.write('GET /large HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await connected).toHaveLength(1);
    await allGone();
  });

  it('is not one that keeps its connection for a later request', async () => {
    const { socket, answer } = open();
    const request = 'POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\nx';
    socket.write(request);
    await eventually(() => answer().endsWith('read'), 'the first answer');
    // Longer than every limit, for a connection that is not in use.
    await new Promise((resolve) => setTimeout(resolve, 400));
    socket.write(request);
    await eventually(() => answer().split('200 OK').length === 3, 'the second answer');
    expect(await connections()).toBe(1);
  });
});

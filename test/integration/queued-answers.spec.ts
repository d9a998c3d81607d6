import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { FastifyInstance } from 'fastify';
import type { ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { eventually } from '../support/eventually.js';
import { bareHttpServer } from '../support/http-server.js';

const count = 20;

describe('an answer that waits for those before it on its connection', () => {
  let fastify: FastifyInstance;
  let socket: Socket;
  let answers: ServerResponse[];
  let closed: ServerResponse[];
  let received: string;
  let begin: () => void;
  let begun: Promise<void>;

  beforeAll(async () => {
    fastify = bareHttpServer();
    fastify.get('/held', async (_, { raw }) => {
      answers.push(raw);
      raw.on('close', () => closed.push(raw));
      await begun;
      return 'held';
    });
    await fastify.listen({ port: 0, host: '127.0.0.1' });
  });
  beforeEach(async () => {
    [answers, closed, received] = [[], [], ''];
    begun = new Promise((resolve) => (begin = resolve));
    socket = connect((fastify.server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('data', (bytes: Buffer) => (received += bytes.toString()));
    socket.write('GET /held HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(count));
    await eventually(() => answers.length === count, 'the requests');
  });
  afterEach(() => {
    begin();
    socket.destroy();
  });
  afterAll(() => fastify.close());

  it('is told that the connection has gone, as the first one is', async () => {
    socket.destroy();
    await eventually(() => closed.length > 0);
    begin();
    await eventually(() => closed.length === count, 'all to be told');
    expect(new Set(closed)).toEqual(new Set(answers));
    expect(answers.every(({ destroyed }) => destroyed)).toBe(true);
  });

  it('is told that once, also where it was answered or given up before', async () => {
    answers[3]!.destroy();
    answers[4]!.end();
    socket.destroy();
    await eventually(() => closed.length === count, 'all to be told');
    expect(new Set(closed)).toEqual(new Set(answers));
  });

  it('is given in its turn otherwise, and over when it was taken', async () => {
    expect(closed).toEqual([]);
    begin();
    await eventually(() => closed.length === count, 'all to be taken');
    expect(closed).toEqual(answers);
    await eventually(() => received.split('200 OK').length === count + 1, 'all answers');
    socket.destroy();
    await eventually(() => socket.closed);
    expect(closed).toHaveLength(count);
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { eventually } from '../support/eventually.js';
import { bareHttpServer } from '../support/http-server.js';

const limits = { headers: 1000, request: 2000, answer: 60_000, lastAnswer: 1000, lookEvery: 20 };
const publication = 'POST /held HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\nx';
const chunked = 'POST /held HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n';

describe('a request that came whole', () => {
  let fastify: FastifyInstance;
  let socket: Socket;
  let handled: number;
  let refused: string[];
  let received: string;
  let isClosed: boolean;
  let begin: () => void;
  let begun: Promise<void>;

  beforeEach(async () => {
    fastify = bareHttpServer({ limits });
    fastify.post('/held', async (_, reply) => {
      const number = ++handled;
      await begun;
      return reply.status(201).send(`answer ${number}`);
    });
    fastify.post('/quick', async (_, reply) => {
      handled++;
      return reply.status(204).send();
    });
    fastify.get('/stream', (_, reply) => {
      reply.hijack();
      reply.raw.writeHead(200).write('an event');
    });
    fastify.server.on('clientError', ({ code }: NodeJS.ErrnoException) => refused.push(code!));
    await fastify.listen({ port: 0, host: '127.0.0.1' });
    [handled, refused, received, isClosed] = [0, [], '', false];
    begun = new Promise((resolve) => (begin = resolve));
    socket = connect((fastify.server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => {});
    socket.on('data', (bytes: Buffer) => (received += bytes.toString()));
    socket.on('close', () => (isClosed = true));
  });
  afterEach(() => {
    begin();
    socket.destroy();
    return fastify.close();
  });

  /** The statuses of all answers, when the connection has ended by the server's doing. */
  async function statuses(): Promise<string[]> {
    await eventually(() => isClosed, 'the connection to end');
    return [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status!);
  }

  const failed = (code?: string) =>
    eventually(() => (code ? refused.includes(code) : refused.length > 0), 'the error to be met');

  it('is answered, and told that its connection ends, where a byte follows that is not part of it', async () => {
    socket.write(`${publication}\0`);
    await failed();
    expect([received, isClosed]).toEqual(['', false]);
    begin();
    expect(await statuses()).toEqual(['201']);
    expect(received).toMatch(/^connection: close\r$/im);
    expect(received.endsWith('answer 1')).toBe(true);
  });

  it('is answered where bytes go on to follow, and where its caller has asked for the end of the connection', async () => {
    socket.write(publication.replace('Host: x', 'Host: x\r\nConnection: close'));
    await eventually(() => handled === 1, 'the request');
    for (let byte = 1; byte <= 3; byte++) {
      socket.write('\0');
      await eventually(() => refused.length >= byte, 'the error to be met');
    }
    begin();
    expect(await statuses()).toEqual(['201']);
  });

  it('is answered, as those before it, where a further one is no HTTP', async () => {
    socket.write(`${publication}${publication}NOT HTTP\r\n\r\n`);
    await failed();
    begin();
    expect(await statuses()).toEqual(['201', '201']);
    expect(received).toMatch(/answer 1[^]*answer 2$/);
  });

  it('is answered though the one behind it was answered at once, where what follows is no HTTP', async () => {
    socket.write(publication + publication.replace('/held', '/quick'));
    await eventually(() => handled === 2, 'the requests');
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    socket.write('NOT HTTP\r\n\r\n');
    await failed();
    begin();
    expect((await statuses()).slice(0, 2)).toEqual(['201', '204']);
  });

  it('is answered before a further one is refused whose body breaks off into something else', async () => {
    socket.write(`${publication}${chunked}not a length\r\n`);
    await failed();
    begin();
    expect(await statuses()).toEqual(['201', '400']);
    expect(received).toMatch(/answer 1[^]*"code":"parse_error"/);
  });

  it('is answered before a further one is refused that does not go on', async () => {
    socket.write(`${publication}POST /held HTTP/1.1\r\nHost:`);
    await failed('ERR_HTTP_REQUEST_TIMEOUT');
    begin();
    expect(await statuses()).toEqual(['201', '408']);
  });

  it('is answered, and a further one too that goes on after its time while the answer is awaited', async () => {
    socket.write(`${publication}POST /held HTTP/1.1\r\nHost:`);
    await failed('ERR_HTTP_REQUEST_TIMEOUT');
    // After the second thought about a late look.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    socket.write(publication.slice(publication.indexOf(' x\r\n')));
    await eventually(() => handled === 2, 'the further one');
    begin();
    await eventually(() => received.includes('answer 2'), 'both answers');
    // The connection is still of use.
    socket.write(publication.replace('Host: x', 'Host: x\r\nConnection: close'));
    await eventually(() => handled === 3, 'one more');
    expect(await statuses()).toEqual(['201', '201', '201']);
  });

  it('is answered as one of several whose callers are let go; the last answer alone ends their connection', async () => {
    socket.write(publication + publication);
    await eventually(() => handled === 2, 'the requests');
    fastify.answers.letCallersGo();
    begin();
    expect(await statuses()).toEqual(['201', '201']);
    expect(received).toMatch(/^[^]*answer 1HTTP[^]*\r\nconnection: close\r\n[^]*answer 2$/i);
    expect(received.match(/connection: close/gi)).toHaveLength(1);
  });

  it('is not awaited by the refusal of what follows where its answer is a stream that has begun', async () => {
    socket.write('GET /stream HTTP/1.1\r\nHost: x\r\n\r\n');
    await eventually(() => received.includes('an event'), 'the stream');
    socket.write('NOT HTTP\r\n\r\n');
    expect((await statuses())[0]).toBe('200');
  });

  it('is not awaited by the refusal of another whose body breaks off into something else', async () => {
    socket.write(`${chunked}not a length\r\n`);
    expect(await statuses()).toEqual(['400']);
  });
});

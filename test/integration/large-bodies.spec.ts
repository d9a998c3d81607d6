import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { UnparsedBody } from '../../src/infra/http/json-body.pipe.js';
import { eventually } from '../support/eventually.js';
import { bareHttpServer } from '../support/http-server.js';

const mebibyte = 1024 * 1024;
/** Of all callers together, before anybody is asked who they are. */
const ofAll = 32;

describe('the room for large bodies', () => {
  let fastify: FastifyInstance;
  let sockets: Socket[];
  /** Requests that were answered, or wait for an answer. */
  let served: number;
  let answerNow: () => void;

  beforeEach(async () => {
    fastify = bareHttpServer();
    fastify.setErrorHandler((error, request, reply) => fastify.problems.answer(error, request, reply));
    [sockets, served] = [[], 0];
    const asked = new Promise<void>((resolve) => (answerNow = resolve));
    fastify.post('/echo', ({ body }) => {
      served++;
      return { bytes: (body as UnparsedBody).bytes.length, text: (body as UnparsedBody).bytes.toString('utf8', 0, 20) };
    });
    fastify.post('/later', async () => {
      served++;
      await asked;
      return 'x'.repeat(mebibyte);
    });
    await fastify.listen({ port: 0, host: '127.0.0.1' });
  });

  afterEach(async () => {
    answerNow();
    for (const socket of sockets) socket.destroy();
    await fastify.close();
  });

  function open(): { socket: Socket; answer: () => string } {
    const socket = connect((fastify.server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => {}); // reset by the server
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
    sockets.push(socket);
    return { socket, answer: () => answer };
  }

  const head = (length: number | 'chunked', path = '/echo', more = '') =>
    `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${more}` +
    `${length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`}\r\n\r\n`;
  const piece = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

  const full = /^HTTP\/1\.1 503 Service Unavailable\r\n[^]*retry-after: 5\r\n[^]*"code":"too-many-bodies"/i;

  /** Sends a body of a mebibyte until it is read, or refused. */
  async function sendLarge(more = ''): Promise<string> {
    const { socket, answer } = open();
    socket.write(head(mebibyte, '/echo', `Connection: close\r\n${more}`) + 'x'.repeat(mebibyte));
    await eventually(() => answer().includes('}'), 'the answer');
    return answer();
  }

  /** All that strangers may have, by bodies of which nothing comes. */
  async function fill(more = ''): Promise<void> {
    await eventually(async () => {
      if (full.test(await sendLarge(more))) return true;
      for (let nr = 0; nr < ofAll; nr++) open().socket.write(head(mebibyte, '/echo', more));
      return false;
    }, 'the room to be used up');
  }

  it('is refused to strangers where others announced bodies that do not come, and not to those who are known', async () => {
    fastify.bodies.clientOf = ({ headers }) => headers.authorization;
    await fill();
    expect(await sendLarge('Authorization: known\r\n')).toMatch(/^HTTP\/1\.1 200 [^]*"bytes":1048576/);
    expect(await sendLarge()).toMatch(full);
  });

  it('has an end for all who are known together', async () => {
    fastify.bodies.clientOf = ({ headers }) => headers.authorization;
    await fill();
    const clients = ['one', 'two', 'three', 'four', 'five'].map((name) => `Authorization: ${name}\r\n`);
    for (const client of clients) await fill(client);
    expect(sockets.length).toBeGreaterThan(ofAll + 256);
    expect(await sendLarge('Authorization: six\r\n')).toMatch(full);
  });

  it('of one who is known leaves some to the next', async () => {
    fastify.bodies.clientOf = ({ headers }) => headers.authorization;
    await fill();
    await fill('Authorization: one\r\n');
    expect(await sendLarge('Authorization: two\r\n')).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('is not needed for a small body, announced or not', async () => {
    await fill();
    const { socket, answer } = open();
    socket.write(head(16_384) + 'x'.repeat(16_384));
    await eventually(() => answer().includes('"bytes":16384'), 'the first answer');
    socket.write(head('chunked') + piece('small') + piece(', and é') + piece(''));
    await eventually(() => answer().includes('"text":"small, and é"'.replace('é', 'Ã©')), 'the second answer');
  });

  it('is counted for a body of unknown length as it comes', async () => {
    const half = piece('x'.repeat(mebibyte / 2));
    await eventually(async () => {
      const { socket, answer } = open();
      socket.write(head('chunked') + half + half + piece(''));
      await eventually(() => answer().includes('}'), 'the answer');
      if (full.test(answer())) return true;
      for (let nr = 0; nr < ofAll; nr++) open().socket.write(head('chunked') + half + half);
      return false;
    }, 'the room to be used up');
  });

  it('is given back by connections that are cut', async () => {
    await fill();
    for (const socket of sockets) socket.destroy();
    await eventually(async () => (await sendLarge()).startsWith('HTTP/1.1 200 '), 'room');
  });

  it('is given back by requests that waited, on a connection that is cut, for the answer before theirs', async () => {
    const { socket } = open();
    for (let nr = 0; nr < 4; nr++) socket.write(head(mebibyte, '/later') + 'x'.repeat(mebibyte));
    await eventually(() => served === 4, 'all of them to be served');
    socket.destroy();
    await eventually(async () => (await connections()) === 0, 'the connection to be gone');
    for (let nr = 0; nr < ofAll; nr++) open().socket.write(head(mebibyte, '/later') + 'x'.repeat(mebibyte));
    await eventually(() => served === 4 + ofAll, 'as many as there is room for');
  });

  it('is taken until the answer, not until the body is there', async () => {
    for (let nr = 0; nr < ofAll; nr++) open().socket.write(head(mebibyte, '/later') + 'x'.repeat(mebibyte));
    await eventually(() => served === ofAll, 'all of them to be served');
    expect(await sendLarge()).toMatch(full);
    answerNow();
    await eventually(async () => (await sendLarge()).startsWith('HTTP/1.1 200 '), 'room');
  });

  it('is not asked for where there is no route: the 404 comes before the body, none of which is kept', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const asked = Array.from({ length: 10 }, () => {
        const { socket, answer } = open();
        socket.write(head(mebibyte, '/nothing').replace('POST', method) + 'x'.repeat(mebibyte / 2));
        return answer;
      });
      for (const answer of asked) {
        await eventually(() => answer().includes('}'), 'the answer');
        expect(answer()).toMatch(/^HTTP\/1\.1 404 [^]*"code":"not_found"/);
      }
    }
    expect(await sendLarge()).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('is refused to a large body that it was not told to expect', async () => {
    vi.spyOn(fastify.bodies, 'expect').mockReturnValue();
    expect(await sendLarge()).toMatch(/^HTTP\/1\.1 500 [^]*"code":"error"/);
    const { socket, answer } = open();
    socket.write(head(16_384) + 'x'.repeat(16_384));
    await eventually(() => answer().includes('"bytes":16384'), 'the answer to a small one');
    socket.write(head('chunked') + piece('x'.repeat(16_385)));
    await eventually(() => answer().includes('"code":"error"'), 'the answer to one that becomes large');
  });

  const tooLarge = /^HTTP\/1\.1 413 [^]*"code":"payload_too_large"/;

  const oldHead = (length: number) =>
    `POST /echo HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;

  /** As a client that reads nothing before it has written all. */
  async function writeThenRead(text: string): Promise<string> {
    const { socket, answer } = open();
    socket.pause();
    await new Promise<void>((resolve, reject) => socket.write(text, (error) => (error ? reject(error) : resolve())));
    socket.resume();
    await eventually(() => answer().includes('}'), 'the answer');
    return answer();
  }

  it.each([3, 20])('a caller that writes %i MB before it reads learns that this is too much', async (megabytes) => {
    const body = 'x'.repeat(megabytes * mebibyte);
    expect(await writeThenRead(head(body.length) + body)).toMatch(tooLarge);
    expect(await writeThenRead(head('chunked') + piece(body) + piece(''))).toMatch(tooLarge);
  });

  it('so does one that wants its connection closed, and it is closed when all is written', async () => {
    const body = 'x'.repeat(20 * mebibyte);
    for (const text of [head(body.length, '/echo', 'Connection: close\r\n') + body, `${oldHead(body.length)}${body}`]) {
      expect(await writeThenRead(text)).toMatch(tooLarge);
      await eventually(() => sockets.at(-1)!.closed, 'the connection to be closed');
    }
  });

  it.each([
    ['announced', 3 * mebibyte],
    ['announced', 400 * mebibyte],
    ['of unknown length', 'chunked'],
  ] as const)(
    'one that writes slowly sees at once that a body %s (%s) is too large, and may send another on its connection',
    async (_how, length) => {
      const { socket, answer } = open();
      socket.write(head(length));
      if (length === 'chunked') socket.write(piece('x'.repeat(mebibyte)) + piece('x'));
      await eventually(() => tooLarge.test(answer()), 'the answer');
      if (length === 400 * mebibyte) return;
      socket.write(length === 'chunked' ? piece('rest') + piece('') : 'x'.repeat(length));
      socket.write(head(5) + 'other');
      await eventually(() => answer().includes('"text":"other"'), 'the second answer');
    },
  );

  it('is given back with the refusal of a body that goes on', async () => {
    for (let nr = 0; nr < 2 * ofAll; nr++) {
      const { socket, answer } = open();
      socket.write(head('chunked') + piece('x'.repeat(mebibyte)) + piece('x'));
      await eventually(() => tooLarge.test(answer()), 'the answer');
    }
    expect(await sendLarge()).toMatch(/^HTTP\/1\.1 200 /);
  });

  const connections = () =>
    new Promise<number>((resolve, reject) =>
      fastify.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    );
});

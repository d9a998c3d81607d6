import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { operationsOf } from '../scripts/fuzz/operations.mjs';
import { fuzzServer, type Finding } from '../scripts/fuzz/server-side.mjs';

/** The findings of the fuzzer in a server that does everything wrong: a check that found nothing here would be none. */
describe('the fuzzer finds', () => {
  const text = { content: { 'application/json': { schema: { type: 'object', required: ['a'] } } } };
  const operation = (operationId: string) => ({ get: { operationId, parameters: [], responses: { 200: text } } });
  const paths = Object.fromEntries(
    ['fails', 'surprises', 'differs', 'garbles', 'cuts', 'hangs', 'chats', 'writes'].map((id) => [
      `/${id}`,
      operation(id),
    ]),
  );
  const problem = { type: 't', code: 'c', title: 't', detail: 'd', instance: 'i' };

  const answers: Record<string, RequestListener> = {
    fails: (_, response) => response.writeHead(500).end(),
    surprises: (_, response) => response.writeHead(201, { 'content-type': 'application/json' }).end('{"a":1}'),
    differs: (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"b":1}'),
    garbles: (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{'),
    cuts: (_, response) => response.socket?.destroy(),
    hangs: () => {},
    chats: (_, response) => response.writeHead(404, { 'content-type': 'text/plain' }).end('no problem'),
    writes: ({ headers }, response) => {
      refused.push(String(headers['x-request-id']));
      response
        .writeHead(400, { 'content-type': 'application/problem+json' })
        .end(JSON.stringify({ ...problem, status: 400 }));
    },
  };

  let server: Server;
  const refused: string[] = [];
  let findings: Finding[];

  /** A database in which each request that was refused has left something behind. */
  const sql = (statement: string): Promise<unknown[]> => {
    if (statement.includes('max(nr)')) return Promise.resolve([{ version: '1', last: '0', now_ms: '0' }]);
    if (statement.includes('FROM audit_entry'))
      return Promise.resolve(refused.map((id, nr) => ({ nr: String(nr), request_id: id, action: 'thing.changed' })));
    if (statement.includes('FROM catalogue')) return Promise.resolve([{ version: '1000' }]);
    if (statement.includes('FROM notification WHERE')) return Promise.resolve([{ id: 'nobody-was-told' }]);
    if (statement.includes('FROM delivery')) return Promise.resolve([{ notification_id: 'lone' }]);
    return Promise.resolve([{ name: 'smuggled-1' }]);
  };

  beforeAll(async () => {
    server = createServer((request, response) => {
      const path = request.url?.split('?')[0] ?? '';
      if (path === '/docs/openapi.json')
        return void response.end(JSON.stringify({ paths, components: { schemas: {} } }));
      if (path.endsWith('openapi.json')) return void response.end('{"paths":{},"components":{"schemas":{}}}');
      request.resume();
      (answers[path.slice(1)] ?? answers.fails!)(request, response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const target = { port, sql, receiverUrl: 'http://receiver.invalid/', tokens: { good: ['good'], bad: ['bad'] } };
    ({ findings } = await fuzzServer(target, { requests: 250, seed: 1, patienceMs: 200 }));
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  it.each([
    ['a fault of the server', /^fails .*answered 500$/],
    ['a status that is not documented', /^surprises .*answered 201, which the document does not have/],
    ['a body of another form', /^differs .*answered 200 other than documented: data must have required property 'a'/],
    ['a body that is not JSON', /^garbles .*with a body that is not JSON/],
    ['a connection that is closed instead', /^cuts .*closed without an answer/],
    ['a request without an answer', /^hangs .*no answer within/],
    ['a refusal that is no problem', /^chats .*answered 404: no problem but text\/plain/],
    ['a refused request that did something', /request \d+ was refused, but did thing\.changed/],
    ['changes without a note', /999 changes of the catalogue, of which \d+ were noted/],
    ['a notification that no answer names', /notification nobody-was-told is stored/],
    ['deliveries of no notification', /1 deliveries of no notification/],
    ['a hidden request that was carried out', /a hidden request was carried out: smuggled-1/],
  ])('%s', (_, pattern) => {
    expect(findings.map(({ what }) => what)).toContainEqual(expect.stringMatching(pattern));
  });
});

describe('an answer with an address', () => {
  const address = { type: 'object', properties: { url: { type: 'string', format: 'uri' } } };
  const [operation] = operationsOf(
    {
      paths: {
        '/': {
          get: { operationId: 'one', responses: { 200: { content: { 'application/json': { schema: address } } } } },
        },
      },
      components: { schemas: {} },
    },
    '',
  );

  it.each([
    ['https://example.org/a?b#c', false],
    ['https://é.example.org/☃', false],
    ['example.org', true],
    ['', true],
  ])('%s is refused: %s', (url, isRefused) => {
    expect(operation!.mismatch(200, 'application/json', { url }) !== undefined).toBe(isRefused);
  });
});

describe('an answer with a field that the document lacks', () => {
  const inner = { type: 'object', properties: { a: { type: 'string' } } };
  const any = { type: 'object', properties: {}, additionalProperties: {} };
  const schemas = {
    Inner: inner,
    Outer: { type: 'object', properties: { inner, any, list: { type: 'array', items: inner } } },
  };
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Outer' } } };
  const [operation] = operationsOf(
    { paths: { '/': { get: { operationId: 'one', responses: { 200: { content } } } } }, components: { schemas } },
    '',
  );

  it.each([
    [{ inner: { a: 'b' }, any: { b: 1 }, list: [{ a: 'b' }] }, false],
    [{ b: 1 }, true],
    [{ inner: { b: 1 } }, true],
    [{ list: [{ b: 1 }] }, true],
  ])('%j is refused: %s', (answer, isRefused) => {
    expect(operation!.mismatch(200, 'application/json', answer) !== undefined).toBe(isRefused);
  });
});

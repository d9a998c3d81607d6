import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { eventually } from '../support/eventually.js';
import { Api, superuser, type ApiAnswer, type ApiRequest } from '../support/api.js';
import { sendRaw as sendRawTo } from '../support/send-raw.js';
import { signToken } from '../support/tokens.js';

let api: Api;

beforeAll(async () => {
  api = await Api.start({ BODY_LIMIT_BYTES: '10000' });
});

afterAll(() => api.close());

const sendRaw = (text: string) => sendRawTo(api.origin, text);

function expectProblem(answer: ApiAnswer, status: number, code: string, type: string): void {
  expect([answer.status, answer.json.code]).toEqual([status, code]);
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  expect(answer.json).toMatchObject({ type: `${api.origin}/ref/fouten/${type}/`, status });
}

describe('every answer below /api/v1', () => {
  it.each<[string, string, ApiRequest]>([
    ['GET', '/kanaal', {}],
    ['GET', '/', { token: null }],
    ['GET', '/openapi.yaml', { token: null }],
    ['GET', '/kanaal', { token: null }],
    ['GET', '/nothing', {}],
    ['DELETE', '/kanaal', {}],
    ['OPTIONS', '/kanaal', {}],
    ['GET', '/kanaal/%ZZ', {}],
    ['POST', '/kanaal', { body: '{' }],
  ])('names the version of the standard: %s %s', async (method, path, request) => {
    expect((await api.call(method, path, request)).headers.get('api-version')).toBe('1.0.1');
  });

  it('spells the header as the standard does', async () => {
    const answer = await sendRaw('GET /api/v1/kanaal HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    expect(answer).toContain('\r\nAPI-version: 1.0.1\r\n');
  });

  it.each([
    ['GET', '/kanaal', '403 Forbidden'],
    ['DELETE', '/kanaal', '405 Method Not Allowed'],
    ['OPTIONS', '/kanaal', '204 No Content'],
  ])('is the same for a client that sends the whole URL: %s %s', async (method, path, status) => {
    const answer = await sendRaw(
      `${method} ${api.origin}/api/v1${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toContain(`HTTP/1.1 ${status}\r\n`);
    expect(answer).toContain('\r\nAPI-version: 1.0.1\r\n');
  });
});

describe('a problem', () => {
  it('has the keys of a Fout, in their order, and nothing else', async () => {
    const { json } = await api.get(`/kanaal/${randomUUID()}`);
    expect(Object.keys(json)).toEqual(['type', 'code', 'title', 'status', 'detail', 'instance']);
    expect(json.instance).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it('has invalidParams after these when fields are wrong', async () => {
    const { json } = await api.post('/kanaal', {});
    expect(Object.keys(json)).toEqual(['type', 'code', 'title', 'status', 'detail', 'instance', 'invalidParams']);
    expect(Object.keys(json.invalidParams[0]!)).toEqual(['name', 'code', 'reason']);
  });

  it('is in the log under its instance', async () => {
    const { json } = await api.get('/kanaal', { token: null });
    const logged = api.logged.find(({ instance }) => instance === json.instance);
    expect(logged).toMatchObject({
      event: 'request.refused',
      status: 403,
      code: 'permission_denied',
      path: '/api/v1/kanaal',
      address: '127.0.0.1',
    });
  });

  it('is at debug but for the first of its code in a minute: anyone can cause it, and could fill a disk', async () => {
    const lines = () =>
      api.logged.filter(({ event, code }) => event === 'request.refused' && code === 'method_not_allowed');
    const before = lines().length;
    for (let times = 0; times < 10; times++) await api.delete('/kanaal');
    const levels = lines().map(({ level }) => level);
    expect(levels.length).toBe(before + 10);
    // Two, should a minute begin meanwhile.
    expect(levels.filter((level) => level !== 'debug').length).toBeLessThanOrEqual(2);
    expect(levels).toContain('log');
  });

  it('is counted by status and code, and by nothing that the caller sends', async () => {
    const counted = async (status: number, code: string) => {
      const { text } = await api.get(`${api.origin}/metrics`, { token: null });
      const line = new RegExp(`^heraut_requests_refused_total\\{status="${status}",code="${code}"\\} (\\d+)$`, 'm');
      return Number(line.exec(text)?.[1] ?? 0);
    };
    const look = () =>
      Promise.all([counted(403, 'permission_denied'), counted(404, 'not_found'), counted(431, 'headers_too_large')]);
    const [denied, absent, tooLarge] = await look();
    await api.get('/kanaal', { token: null });
    await api.get(`/${randomUUID()}`);
    await api.get(`/${randomUUID()}`);
    await sendRaw(`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect(await look()).toEqual([denied! + 1, absent! + 2, tooLarge! + 1]);
  });

  it('links to a page that explains its class', async () => {
    const { json } = await api.get('/nothing');
    const page = await api.get(json.type as string, { token: null });
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toMatch('text/html');
    expect(page.text).toContain('NotFound');
    expectProblem(await api.get(`${api.origin}/ref/fouten/constructor/`), 404, 'not_found', 'NotFound');
  });
});

describe('the errors of HTTP', () => {
  it.each([
    ['an unknown path', '/nothing'],
    ['a slash at the end', '/kanaal/'],
    ['an id that is no UUID', '/kanaal/1'],
    ['an id that nothing has', `/abonnement/${randomUUID()}`],
    ['an id longer than any', `/kanaal/${'a'.repeat(500)}`],
    ['an id that cannot be decoded', '/kanaal/%E0%A4%A'],
    ['U+0000 in the path', '/kanaal/%00'],
  ])('404 for %s', async (_, path) => {
    expectProblem(await api.get(path), 404, 'not_found', 'NotFound');
  });

  it('404 for another major version', async () => {
    expectProblem(await api.get(`${api.origin}/api/v2/kanaal`), 404, 'not_found', 'NotFound');
  });

  it.each([
    ['DELETE', '/kanaal', 'GET, HEAD, OPTIONS, POST'],
    ['DELETE', `/kanaal/${randomUUID()}`, 'GET, HEAD, OPTIONS, PATCH, PUT'],
    ['POST', `/abonnement/${randomUUID()}`, 'DELETE, GET, HEAD, OPTIONS, PATCH, PUT'],
    ['GET', '/notificaties', 'OPTIONS, POST'],
  ])('405 with what is possible for %s %s', async (method, path, allow) => {
    const answer = await api.call(method, path);
    expectProblem(answer, 405, 'method_not_allowed', 'MethodNotAllowed');
    expect(answer.headers.get('allow')).toBe(allow);
  });

  it('tells what is possible when asked by OPTIONS', async () => {
    const answer = await api.call('OPTIONS', '/notificaties', { token: null });
    expect([answer.status, answer.headers.get('allow'), answer.text]).toEqual([204, 'OPTIONS, POST', '']);
  });

  it('answers HEAD where it answers GET, without the body', async () => {
    const [head, get] = [await api.call('HEAD', '/kanaal'), await api.get('/kanaal')];
    expect([head.status, head.text]).toEqual([200, '']);
    expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'));
  });

  it('406 where Accept excludes JSON, before any other check', async () => {
    const headers = { accept: 'text/html' };
    expectProblem(await api.post('/kanaal', '{', { headers, token: null }), 406, 'not_acceptable', 'NotAcceptable');
  });

  it('413 for a body above the limit, announced or not', async () => {
    const announced = await api.post('/kanaal', 'x'.repeat(10_001));
    expectProblem(announced, 413, 'payload_too_large', 'PayloadTooLarge');
    const chunks = `${(10_001).toString(16)}\r\n${'x'.repeat(10_001)}\r\n0\r\n\r\n`;
    const chunked = await sendRaw(
      `POST /api/v1/kanaal HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${chunks}`,
    );
    expect(chunked).toMatch(/^HTTP\/1.1 413 [^]*"code":"payload_too_large"/);
  });

  it.each<[string, Record<string, string>]>([
    ['another media type', { 'content-type': 'text/plain' }],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['an XML', { 'content-type': 'application/xml' }],
    ['a CloudEvent', { 'content-type': 'application/cloudevents+json' }],
    ['ten thousand spaces', { 'content-type': `application/json;${' '.repeat(10_000)}x;charset=x` }],
    ['a media type that is none', { 'content-type': 'nonsense' }],
    ['an empty media type', { 'content-type': '' }],
    ['another charset', { 'content-type': 'application/json; charset=iso-8859-1' }],
    ['a compressed body', { 'content-encoding': 'gzip' }],
  ])('415 for %s', async (_, headers) => {
    const answer = await api.post('/kanaal', '{}', { headers });
    expectProblem(answer, 415, 'unsupported_media_type', 'UnsupportedMediaType');
  });

  it('415 for a body without a media type, and for none at all', async () => {
    const authorization = `Authorization: Bearer ${signToken(superuser)}`;
    const head = `POST /api/v1/kanaal HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${authorization}\r\n`;
    expect(await sendRaw(`${head}Content-Length: 2\r\n\r\n{}`)).toMatch(/^HTTP\/1.1 415 /);
    expect(await sendRaw(`${head}Content-Length: 0\r\n\r\n`)).toMatch(/^HTTP\/1.1 415 /);
  });

  it.each([
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON;charset="UTF-8"',
    'application/json;a=b;',
  ])('accepts %s', async (contentType) => {
    expect((await api.post('/kanaal', '{}', { headers: { 'content-type': contentType } })).json.code).toBe('invalid');
  });

  it.each([
    ['an object that does not end', '{"naam":'],
    ['nothing', ''],
    ['a byte order mark', '\ufeff{}'],
    ['two values', '{} {}'],
    ['NaN', '{"naam":NaN}'],
    ['single quotes', "{'naam':'x'}"],
    ['bytes that are not UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ])('400 parse_error for %s', async (_, body) => {
    const answer = await api.post('/kanaal', body, { headers: { 'content-type': 'application/json' } });
    expectProblem(answer, 400, 'parse_error', 'ParseError');
    expect(answer.json.invalidParams).toBeUndefined();
  });

  it.each(['[]', '"text"', '1', 'true', 'null'])('400 for the JSON value %s', async (body) => {
    const answer = await api.post('/kanaal', body);
    expectProblem(answer, 400, 'invalid', 'ValidationError');
    expect(answer.json.invalidParams).toMatchObject([{ name: 'nonFieldErrors', code: 'invalid' }]);
  });
});

describe('headers that break HTTP/1.1', () => {
  const problem = (status: string, code: string) =>
    new RegExp(
      `^HTTP/1\\.1 ${status}\\r\\n[^]*content-type: application/problem\\+json\\r\\n[^]*"code":"${code}"`,
      'i',
    );

  it('400 for a request without a Host', async () => {
    const answer = await sendRaw('GET /api/v1/kanaal HTTP/1.1\r\nConnection: close\r\n\r\n');
    expect(answer).toMatch(problem('400 Bad Request', 'parse_error'));
    expect(answer).toContain('\r\nAPI-version: 1.0.1\r\n');
    expect(answer).toMatch(/"type":"http:\/\/127\.0\.0\.1:\d+\/ref\/fouten\/ParseError\/"/);
  });

  it('400 for a request with two', async () => {
    const answer = await sendRaw('GET /health/live HTTP/1.1\r\nHost: a\r\nhOST: b\r\nConnection: close\r\n\r\n');
    expect(answer).toMatch(problem('400 Bad Request', 'parse_error'));
  });

  it('accepts HTTP/1.0, which has no Host', async () => {
    expect(await sendRaw('GET /api/v1/ HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  it.each(['200-ok', '', 'nonsense'])('417 and the end of the connection for Expect: %s', async (expectation) => {
    const head = `POST /api/v1/kanaal HTTP/1.1\r\nHost: x\r\nExpect: ${expectation}\r\nContent-Length: 2\r\n\r\n`;
    const answer = await sendRaw(head);
    expect(answer).toMatch(problem('417 Expectation Failed', 'expectation_failed'));
    expect(answer).toMatch(/\r\nconnection: close\r\n/i);
    expect(answer).toContain('\r\nAPI-version: 1.0.1\r\n');
  });

  it('goes on for Expect: 100-continue', async () => {
    const head = 'POST /api/v1/kanaal HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n';
    expect(await sendRaw(`${head}Content-Length: 0\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 403 /,
    );
  });
});

describe('bytes that are not HTTP', () => {
  it('is answered with a problem and the end of the connection', async () => {
    expect(await sendRaw('NONSENSE\r\n\r\n')).toMatch(
      /^HTTP\/1.1 400 Bad Request\r\nContent-Type: application\/problem\+json\r\n[^]*"code":"parse_error"/,
    );
  });

  it('431 for more than a hundred headers, of which Node would leave some out', async () => {
    const withMore = (count: number) =>
      sendRaw(`GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${'a: b\r\n'.repeat(count)}\r\n`);
    expect(await withMore(98)).toMatch(/^HTTP\/1.1 200 /);
    expect(await withMore(99)).toMatch(/^HTTP\/1.1 431 [^]*"code":"headers_too_large"/);
    expect(await withMore(2500)).toMatch(/^HTTP\/1.1 431 /);
  });

  it('431 for headers above 16 KiB', async () => {
    const answer = await sendRaw(`GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 431 [^]*"code":"headers_too_large"/);
  });
});

describe('a caller that goes away in the middle of its body', () => {
  it('is no fault of the server', async () => {
    const { hostname, port } = new URL(api.origin);
    const socket = connect(Number(port), hostname);
    const path = `/api/v1/kanaal?${randomUUID()}`;
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`);
    await once(socket, 'ready');
    const lines = api.logged.length;
    socket.resetAndDestroy();
    const logged = await eventually(() => api.logged.slice(lines).find(({ event }) => event?.startsWith('request.')));
    expect(logged).toMatchObject({ event: 'request.refused', status: 400, code: 'parse_error' });
  });
});

describe('absolute URLs', () => {
  const create = (headers: Record<string, string>) =>
    api.post('/kanaal', { naam: randomUUID() }, { headers: { ...headers } });

  it('start with the origin that the caller used', async () => {
    const { json, headers } = await create({});
    expect(json.url).toMatch(new RegExp(`^${api.base}/kanaal/`));
    expect(headers.get('location')).toBe(json.url);
  });

  it('do not believe forwarded headers unless told to', async () => {
    const { json } = await create({ 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' });
    expect(json.url).toMatch(new RegExp(`^${api.base}/kanaal/`));
  });

  it('do not begin as those of a caller who comes by https to a proxy, which is logged once, while these are ignored', async () => {
    const behindProxy = await Api.start();
    try {
      const lines = behindProxy.logged.length;
      const told = () => behindProxy.logged.slice(lines).filter(({ event }) => event === 'forwarded-headers.ignored');
      await behindProxy.get('/');
      await behindProxy.get('/', { headers: { 'x-forwarded-proto': 'http' } });
      expect(told()).toEqual([]);
      const { json } = await behindProxy.get('/', { headers: { 'x-forwarded-proto': 'https' } });
      expect(json['kanaal']).toBe(`${behindProxy.base}/kanaal`);
      for (const proto of ['https', 'http, https'])
        await behindProxy.get('/', { headers: { 'x-forwarded-proto': proto } });
      expect(told()).toEqual([
        expect.objectContaining({
          level: 'warn',
          setting: 'TRUST_FORWARDED_HEADERS',
          urlsBeginWith: behindProxy.origin,
        }),
      ]);
    } finally {
      await behindProxy.close();
    }
  });

  it('begin with the prefix that a proxy removes of the path, and so do those of errors, of the document and of the front page', async () => {
    const behindProxy = await Api.start({ TRUST_FORWARDED_HEADERS: 'true', PATH_PREFIX: '/nrc' });
    try {
      const headers = { 'x-forwarded-host': 'example.org', 'x-forwarded-proto': 'https' };
      const { json } = await behindProxy.post('/kanaal', { naam: 'a' }, { headers });
      expect(json.url).toMatch(/^https:\/\/example\.org\/nrc\/api\/v1\/kanaal\//);
      const wrong = await behindProxy.get('/nothing', { headers });
      expect(wrong.json.type).toBe('https://example.org/nrc/ref/fouten/NotFound/');
      const document = await behindProxy.get('/openapi.json');
      expect(document.json).toMatchObject({ servers: [{ url: '/nrc/api/v1' }] });
      const front = await fetch(`${behindProxy.origin}/`);
      const links = [...(await front.text()).matchAll(/href="([^"]*)"/g)].map(([, path]) => path);
      expect(links).toContain('/nrc/health/ready');
      expect(links.filter((path) => !path!.startsWith('/nrc/'))).toEqual([]);
    } finally {
      await behindProxy.close();
    }
  });
  it('follow forwarded headers where these are trusted', async () => {
    const behindProxy = await Api.start({ TRUST_FORWARDED_HEADERS: 'true' });
    try {
      const lines = behindProxy.logged.length;
      const headers = { 'x-forwarded-host': 'nrc.example.org', 'x-forwarded-proto': 'https' };
      const { json } = await behindProxy.post('/kanaal', { naam: 'a' }, { headers });
      expect(json.url).toMatch(/^https:\/\/nrc\.example\.org\/api\/v1\/kanaal\//);
      const events = behindProxy.logged.slice(lines).map(({ event }) => event);
      expect(events).not.toContain('forwarded-headers.ignored');
      const wrong = await behindProxy.get('/nothing', { headers: { 'x-forwarded-host': '"><script>' } });
      expect(wrong.json.type).toBe(`${behindProxy.origin}/ref/fouten/NotFound/`);
    } finally {
      await behindProxy.close();
    }
  });
});

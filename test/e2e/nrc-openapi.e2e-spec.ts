import { afterAll, describe, expect, it } from 'vitest';
import { Ajv, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import type { FastifyInstance } from 'fastify';
import { randomUUID } from 'node:crypto';
import { parse } from 'yaml';
import { closed } from '../../scripts/fuzz/operations.mjs';
import { Postgres } from '../../src/infra/postgres/postgres.js';
import { Api, type ApiAnswer, type ApiRequest } from '../support/api.js';
import { lastPart } from '../support/last-part.js';
import { Receiver } from '../support/receiver.js';
import { expectSwaggerPage } from '../support/swagger-page.js';

/** The server behaves as the document says: every operation, every status that a caller can bring about. */

type Content = Record<string, { schema: object }>;

interface Operation {
  operationId: string;
  parameters: { name: string; in: string; required: boolean; schema: object }[];
  requestBody?: { content: Content };
  responses: Record<string, { headers: Record<string, { required?: boolean }>; content?: Content }>;
}

interface Document {
  openapi: string;
  info: { version: string };
  servers: { url: string }[];
  paths: Record<string, Partial<Record<'get' | 'post' | 'put' | 'patch' | 'delete', Operation>>>;
  components: { schemas: Record<string, object> };
}

// Before the tests are made: there is one for each operation and status.
const [api, receiver] = await Promise.all([
  // The address of a caller that is refused is what its test says, and no other test's.
  Api.start({
    REFUSALS_PER_MINUTE: '3',
    TRUST_FORWARDED_HEADERS: 'true',
    SUBSCRIPTION_BYTES_PER_APPLICATION: '1048576',
  }),
  Receiver.start(),
]);
const nrcDocument = JSON.parse((await api.get('/openapi.json', { token: null })).text) as Document;

const operations = Object.entries(nrcDocument.paths).flatMap(([path, item]) =>
  (['get', 'post', 'put', 'patch', 'delete'] as const).flatMap((method) => {
    const operation = item[method];
    return operation ? [{ method: method.toUpperCase(), path, operation }] : [];
  }),
);

// Reserved by the standard, or our own trouble, which has its own tests.
const notForCallers = ['401', '500', '503'];

const situations = operations.flatMap(({ method, path, operation }) =>
  Object.keys(operation.responses)
    .filter((status) => !notForCallers.includes(status))
    .map((status) => ({ id: operation.operationId, status: Number(status), method, path, operation })),
);

afterAll(() => Promise.all([api.close(), receiver.stop()]));

/**
 * As they stand, since clients read answers with them; and of an answer more: it has the fields that are only answered,
 * none that is only sent, and none that is not documented.
 */
function schemasOf(side: 'request' | 'response'): object {
  const schemas = structuredClone(nrcDocument.components.schemas) as Record<
    string,
    { required?: string[]; properties: Record<string, { writeOnly?: boolean; readOnly?: boolean }> }
  >;
  for (const schema of Object.values(schemas)) {
    for (const [name, { writeOnly, readOnly }] of Object.entries(schema.properties)) {
      if (side === 'response' && readOnly) schema.required = [...(schema.required ?? []), name];
      if (side === 'response' && writeOnly) Object.assign(schema.properties, { [name]: { not: {} } });
    }
  }
  return { components: { schemas: side === 'response' ? closed(schemas) : schemas } };
}

function validator(schema: object, side: 'request' | 'response'): ValidateFunction {
  const ajv = new Ajv({ strict: false, allErrors: true });
  addFormats.default(ajv);
  return ajv.compile({ ...schemasOf(side), ...schema });
}

/** Calls an operation so that it answers with `status`. */
async function provoke(operation: Operation, method: string, path: string, status: number): Promise<ApiAnswer> {
  const { url, body } = await validCall(operation, path);
  const call = (request: ApiRequest) => api.call(method, url, { body, ...request });
  const withKey = { headers: { 'idempotency-key': randomUUID() } };
  switch (status) {
    case 200:
      if (operation.operationId === 'notificaties_put') await call({});
      return call({});
    case 409:
      if (operation.operationId === 'signingkey_create') {
        // Until there are as many as there may be.
        for (let answer = await call({}); ; answer = await call({})) if (answer.status !== 201) return answer;
      }
      if (operation.operationId.startsWith('kanaal')) {
        const { dataSource } = api.app.get(Postgres);
        const full = randomUUID();
        // No room is left, until the other tests go on.
        await dataSource.query(
          `INSERT INTO channel (id, name, documentation_link, filters, version)
           SELECT $1::uuid, 'full', '', array_agg(nr::text), 0 FROM generate_series(1, 200000) AS nr`,
          [full],
        );
        const answer = await call({ body: { ...body, filters: ['one', 'more'] } });
        await dataSource.query('DELETE FROM channel WHERE id = $1', [full]);
        return answer;
      }
      if (operation.operationId === 'abonnement_create') {
        // More than one application may have.
        const { naam } = (await api.post('/kanaal', { naam: randomUUID() })).json;
        const entry = { naam, filters: { name: 'x'.repeat(1000) } };
        return call({ body: { ...body, kanalen: Array.from({ length: 500 }, () => entry) } });
      }
      if (operation.operationId.startsWith('abonnement')) {
        // As where their key was lost.
        const unreadable = `UPDATE subscription SET credentials = 'enc:lost:AAAA' WHERE id = $1`;
        await api.app.get(Postgres).dataSource.query(unreadable, [lastPart(url)]);
        return call({ body: { ...body, credentials: { headers: { 'x-a': 'b' } } } });
      }
      if (operation.operationId === 'signingkey_rotate') {
        await call({});
        return call({});
      }
      if (operation.operationId === 'notificaties_create') return whileNoneIsCommitted(() => call(withKey));
      await call({});
      return call({ body: { ...body, actie: 'other' } });
    case 422:
      await call(withKey);
      return call({ ...withKey, body: { ...body, actie: 'other' } });
    case 400:
      if (body === undefined) return api.call(method, `${url}?unknown=1`);
      // Of a signing key nothing has to be said.
      return call({ body: operation.operationId.startsWith('signingkey') ? { unknown: 1 } : {} });
    case 403:
      return call({ token: null, headers: { 'x-forwarded-for': `made up, ${randomAddress()}` } });
    case 429:
      return refusedOnceMore(() =>
        call({ token: null, headers: { 'x-forwarded-for': `${randomAddress()}, 192.0.2.1` } }),
      );
    case 404:
      return api.call(method, url.replace(/[0-9a-f-]{36}/, randomUUID()), { body });
    case 406:
      return call({ headers: { accept: 'text/html' } });
    case 413:
      return call({ body: ' '.repeat(1_048_577) });
    case 415:
      return call({ body: 'x', headers: { 'content-type': 'text/plain' } });
    default:
      return call({});
  }
}

const randomAddress = () => `2001:db8:${randomUUID().slice(0, 4)}:${randomUUID().slice(0, 4)}::1`;

/** Until the address has used up its refusals: at once, or where a minute begins a few calls later. */
async function refusedOnceMore(call: () => Promise<ApiAnswer>): Promise<ApiAnswer> {
  const answer = await call();
  return answer.status === 403 ? refusedOnceMore(call) : answer;
}

/** Of two calls, the answer to the one that came second: neither can be committed before it is given. */
async function whileNoneIsCommitted(call: () => Promise<ApiAnswer>): Promise<ApiAnswer> {
  const calls: Promise<ApiAnswer>[] = [];
  const answer = await api.app.get(Postgres).dataSource.transaction(async (manager) => {
    await manager.query('LOCK TABLE once_key IN ACCESS EXCLUSIVE MODE');
    // They travel on connections of their own: either may be the one that comes first.
    calls.push(call(), call());
    return Promise.race(calls);
  });
  await Promise.all(calls);
  return answer;
}

/**
 * A call that succeeds, except that PATCH sends something wrong where it is to fail: an empty object is a valid change.
 */
async function validCall({ operationId }: Operation, path: string): Promise<{ url: string; body?: object }> {
  const naam = randomUUID();
  const kanaal = { naam, documentatieLink: 'https://example.org/docs', filters: ['object_type'] };
  const abonnement = { callbackUrl: receiver.url, auth: 'Bearer x' };
  const [resource, verb = ''] = operationId.split(/_(.*)/);
  if (resource === 'notificaties') {
    await api.post('/kanaal', kanaal);
    const [hoofdObject, resourceUrl] = ['http://openzaak:8000/zaken/1', 'http://openzaak:8000/statussen/1'];
    const rest = { resource: 'status', actie: 'create', aanmaakdatum: '2025-01-01T10:00:00.123Z' };
    const body = { kanaal: naam, hoofdObject, resourceUrl, ...rest, kenmerken: { objectType: 'a' }, source: 'zrc' };
    return { url: path.replace('{key}', randomUUID()), body };
  }
  const body = resource === 'kanaal' ? kanaal : abonnement;
  if (resource === 'signingkey') return validCallOfKey(verb, (await api.post('/abonnement', abonnement)).json.url);
  if (resource === 'fetching') {
    const { url } = (await api.post('/abonnement', abonnement)).json;
    if (verb === 'list') return { url: `${url}/notificaties` };
    return { url: `${url}/notificaties/acknowledge`, body: { ids: [randomUUID()] } };
  }
  if (verb === 'create') return { url: path, body };
  const { json } = await api.post(`/${resource}`, body);
  if (verb === 'list') return { url: path };
  return verb.endsWith('update') ? { url: json.url, body } : { url: json.url };
}

async function validCallOfKey(verb: string, abonnement: string): Promise<{ url: string; body?: object }> {
  const keys = `${abonnement}/signing-keys`;
  if (verb === 'list') return { url: keys };
  if (verb === 'create') return { url: keys, body: { scheme: 'v1a' } };
  const { json } = await api.post(keys, {});
  const one = `${keys}/${String(json['id'])}`;
  return verb === 'rotate' ? { url: `${one}/rotate`, body: { graceSeconds: 60 } } : { url: one };
}

describe('the document', () => {
  it('is OpenAPI 3.0 and the same in YAML and JSON, wherever clients look for it, from every origin', async () => {
    const documents = [
      '/openapi.yaml',
      '/openapi.json',
      '/schema/openapi.yaml?v=3',
      '/schema/openapi.json',
      '/schema/openapi.yaml?format=json',
    ];
    for (const path of documents) {
      const { status, text, headers } = await api.get(path, { token: null });
      expect([status, headers.get('access-control-allow-origin')]).toEqual([200, '*']);
      expect(parse(text)).toEqual(nrcDocument);
    }
    expect(nrcDocument.openapi).toMatch(/^3\.0\.\d+$/);
    expect(nrcDocument.servers[0]!.url).toBe('/api/v1');
    expect(nrcDocument.info.version).toBe('1.0.1');
  });

  it('gives every operation an id of its own, and no header that a client must set', () => {
    expect(operations.map(({ operation }) => operation.operationId).sort()).toEqual(
      [
        ...['list', 'create', 'read', 'update', 'partial_update', 'delete'].map((verb) => `abonnement_${verb}`),
        ...['list', 'create', 'read', 'update', 'partial_update'].map((verb) => `kanaal_${verb}`),
        'fetching_acknowledge',
        'fetching_list',
        'notificaties_create',
        'notificaties_put',
        ...['list', 'create', 'rotate', 'delete'].map((verb) => `signingkey_${verb}`),
      ].sort(),
    );
    const parameters = operations.flatMap(({ operation }) => operation.parameters);
    expect(parameters.filter((parameter) => parameter.in === 'header' && parameter.required)).toEqual([]);
  });

  it('refers only to schemas that it has', () => {
    const references = JSON.stringify(nrcDocument).match(/"\$ref":"[^"]+"/g) ?? [];
    const known = Object.keys(nrcDocument.components.schemas).map((name) => `"$ref":"#/components/schemas/${name}"`);
    expect(known).toEqual(expect.arrayContaining(references));
  });

  it('says of every parameter whether it is required: gemma-zds-client reads the key of each', () => {
    const parameters = operations.flatMap(({ operation }) => operation.parameters);
    expect(parameters.filter(({ required }) => typeof required !== 'boolean')).toEqual([]);
    expect(parameters.filter((parameter) => parameter.in === 'header').length).toBeGreaterThan(0);
  });

  it.each(['/schema', '/schema/'])(
    'is shown at %s, with its operations and schemas and nothing from elsewhere',
    async (path) => {
      await expectSwaggerPage(api, api.base + path, nrcDocument);
    },
  );

  it('is led to from the root, which lists the resources', async () => {
    const { status, json } = await api.get('/', { token: null });
    expect(status).toBe(200);
    expect(json).toEqual(
      Object.fromEntries(['abonnement', 'kanaal', 'notificaties'].map((name) => [name, `${api.base}/${name}`])),
    );
  });
});

describe('the server', () => {
  it('has exactly the operations of the document', () => {
    const documents = /^\/api\/v1\/(openapi\.|schema(\/|$)|$)/;
    const served = routesOf(api.app.getHttpAdapter().getInstance() as FastifyInstance).filter(
      ([, path]) => path.startsWith('/api/') && !documents.test(path),
    );
    const documented = operations.map(({ method, path }) => [method, `/api/v1${path.replaceAll(/\{(\w+)\}/g, ':$1')}`]);
    expect(served.map(String).sort()).toEqual(documented.map(String).sort());
  });

  it.each(situations)('$id answers $status as documented', async ({ operation, method, path, status }) => {
    const answer =
      status === 400 && method === 'PATCH'
        ? await api.call(method, (await validCall(operation, path)).url, { body: '[]' })
        : await provoke(operation, method, path, status);
    expect(answer.status).toBe(status);

    const { headers, content } = operation.responses[status]!;
    for (const [name, { required }] of Object.entries(headers)) {
      expect([name, required === true && answer.headers.get(name) === null]).toEqual([name, false]);
    }
    const [[mediaType, body] = []] = Object.entries(content ?? {});
    expect(answer.headers.get('content-type')?.split(';')[0]).toBe(mediaType);
    const validate = validator(body?.schema ?? { const: '' }, 'response');
    validate(body ? JSON.parse(answer.text) : answer.text);
    expect(validate.errors ?? []).toEqual([]);
  });

  it.each(operations)(
    '$operation.operationId is carried out for a client that accepts the media types of its answers, and no others',
    async ({ operation, method, path }) => {
      const { url, body } = await validCall(operation, path);
      const mediaTypes = Object.values(operation.responses).flatMap(({ content }) => Object.keys(content ?? {}));
      const accept = [...new Set(mediaTypes)].join();
      expect((await api.call(method, url, { body, headers: { accept } })).status).toBeLessThan(300);
    },
  );

  it.each(operations.filter(({ operation }) => operation.requestBody))(
    '$operation.operationId accepts the documented input',
    async ({ operation, method, path }) => {
      const { url, body } = await validCall(operation, path);
      const validate = validator(operation.requestBody!.content['application/json']!.schema, 'request');
      validate(body);
      expect(validate.errors ?? []).toEqual([]);
      expect((await api.call(method, url, { body })).status).toBeLessThan(300);
    },
  );

  it.each(operations.filter(({ method }) => method === 'PATCH'))(
    '$operation.operationId accepts each field alone, as documented, and has no default for the others',
    async ({ operation, method, path }) => {
      const { url, body } = await validCall(operation, path);
      const { schema } = operation.requestBody!.content['application/json']!;
      const validate = validator(schema, 'request');
      for (const some of [{}, ...Object.entries(body!).map(([name, value]) => ({ [name]: value as unknown }))]) {
        validate(some);
        expect(validate.errors ?? []).toEqual([]);
        expect((await api.call(method, url, { body: some })).status).toBe(200);
      }
      const { $ref } = schema as { $ref: string };
      const { properties } = nrcDocument.components.schemas[$ref.split('/').at(-1)!] as { properties: object };
      expect(Object.values(properties).filter((property: object) => 'default' in property)).toEqual([]);
    },
  );
});

describe('keys', () => {
  const schemaOf = (id: string, name: string) =>
    operations
      .find(({ operation }) => operation.operationId === id)!
      .operation.parameters.find((parameter) => parameter.name === name)!.schema;
  const fitsDocument = (id: string, name: string, key: string) =>
    validator(schemaOf(id, name), 'request')(key) === true;
  const quote = (text: string) => `"${text.replace(/["\\]/g, String.raw`\$&`)}"`;

  it.each<[string, string, boolean]>([
    ['one character', 'k', true],
    ['255 characters', 'k'.repeat(255), true],
    ['256 characters', 'k'.repeat(256), false],
    ['257 characters', 'k'.repeat(257), false],
    ['quotes inside', 'a"b"', true],
    ['a space inside', 'a b', true],
    ['255 characters, quoted', quote('q'.repeat(255)), true],
    ['256 characters, quoted', quote('k'.repeat(256)), false],
    ['255 characters that are all escaped', quote('"\\'.repeat(127) + '"'), true],
    ['256 characters that are all escaped', quote('"\\'.repeat(128)), false],
    ['nothing, quoted', '""', false],
    ['only spaces, quoted', '"  "', false],
    ['spaces around it, quoted', '" k "', true],
    ['a quote that does not end', '"k', false],
    ['a quote that ends twice', '"k"k"', false],
    ['an escape of something else', String.raw`"\k"`, false],
    ['a character that is not ASCII', 'é', false],
  ])('Idempotency-Key: %s', async (_, key, isKey) => {
    const { body } = await validCall(
      operations.find(({ operation }) => operation.operationId === 'notificaties_create')!.operation,
      '',
    );
    const { status, json } = await api.post('/notificaties', body, { headers: { 'idempotency-key': key } });
    expect([status, json.code]).toEqual(isKey ? [201, undefined] : [400, 'idempotency-key-invalid']);
    expect(fitsDocument('notificaties_create', 'Idempotency-Key', key)).toBe(isKey);
  });

  it.each<[string, string, boolean]>([
    ['255 characters', 'k'.repeat(255), true],
    ['255 characters that are all encoded', '%'.repeat(255), true],
    ['256 characters', 'k'.repeat(256), false],
    ['10,000 characters', 'k'.repeat(10_000), false],
    ['only spaces', '  ', false],
    ['spaces around it', ' k ', true],
    ['a character that is not ASCII', 'é', false],
  ])('PUT under %s', async (_, key, isKey) => {
    const { operation } = operations.find((one) => one.operation.operationId === 'notificaties_put')!;
    const { body } = await validCall(operation, '');
    const { status } = await api.put(`/notificaties/${encodeURIComponent(key)}`, body);
    expect([status < 300, status === 400]).toEqual([isKey, !isKey]);
    expect(fitsDocument('notificaties_put', 'key', key)).toBe(isKey);
  });
});

/** Method and path of every route, from the tree in which the router prints them. */
function routesOf(server: FastifyInstance): [method: string, path: string][] {
  const parents: string[] = [];
  return server
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const match = /^([│ ]*)[├└]── (\S+) \((.*)\)$/.exec(line);
      if (!match) return [];
      const [, indent = '', segment = '', methods = ''] = match;
      const depth = indent.length / 4;
      const path = (parents[depth - 1] ?? '') + segment;
      parents[depth] = path;
      return methods
        .split(', ')
        .filter((method) => method !== 'HEAD')
        .map((method): [string, string] => [method, path]);
    });
}

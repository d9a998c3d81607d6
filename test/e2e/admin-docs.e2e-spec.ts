import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import type { FastifyInstance } from 'fastify';
import { parse } from 'yaml';
import { AdminApi } from '../support/admin-api.js';
import { expectSwaggerPage } from '../support/swagger-page.js';

interface Schema {
  type?: string;
  format?: string;
  maximum?: number;
}

/** All objects in a document, as each of them may be a schema. */
const everySchemaIn = (value: unknown): Schema[] =>
  typeof value === 'object' && value !== null ? [value, ...Object.values(value).flatMap(everySchemaIn)] : [];

describe('the documentation of the admin API', () => {
  let admin: AdminApi;
  const get = (path: string) => admin.api.get(admin.api.origin + path, { token: null });

  beforeAll(async () => {
    admin = await AdminApi.start();
  });

  afterAll(async () => {
    await admin.close();
  });

  it.each(['/docs', '/docs/'])('is shown at %s without a token, and loads no file of another server', async (path) => {
    await expectSwaggerPage(admin.api, admin.api.origin + path, admin.document);
  });

  it('is OpenAPI 3.0, in JSON and in YAML', async () => {
    expect(admin.document).toMatchObject({ openapi: expect.stringMatching(/^3\.0\./) });
    expect(parse((await get('/docs/openapi.yaml')).text)).toEqual(admin.document);
  });

  it('names the code that tells of a channel that was just removed, and the ETag of the overview', () => {
    const paths = admin.document.paths as Record<string, Record<string, { responses: Record<string, object> }>>;
    const { post } = paths['/admin/v1/subscriptions']!;
    const { patch } = paths['/admin/v1/subscriptions/{subscriptionId}']!;
    for (const operation of [post, patch])
      expect(operation!.responses['409']).toMatchObject({ description: expect.stringContaining('`channel-removed`') });
    const { responses } = paths['/admin/v1/overview']!['get']!;
    for (const status of ['200', '304'])
      expect(responses[status]).toMatchObject({ headers: { ETag: expect.anything() } });
  });

  it('describes every route there is under its paths, and no other', () => {
    const operationsOf = (document: { paths: object }) =>
      Object.entries(document.paths)
        .flatMap(([path, operations]) => Object.keys(operations as object).map((method) => `${method} ${path}`))
        .filter((operation) => / \/(admin|health)\//.test(operation));
    // All controllers of all modules, also those that the document leaves out.
    const everything = SwaggerModule.createDocument(admin.api.app, new DocumentBuilder().build());
    expect(operationsOf(admin.document).sort()).toEqual(operationsOf(everything).sort());

    const server = admin.api.app.getHttpAdapter().getInstance() as FastifyInstance;
    for (const operation of operationsOf(admin.document)) {
      const [method, path] = operation.split(' ') as [string, string];
      const route = { method: method.toUpperCase() as 'GET', url: path.replace(/\{(\w+)\}/g, ':$1') };
      expect([operation, server.hasRoute(route)]).toEqual([operation, true]);
    }
  });

  it('describes operations for superusers only, but for the health and the metrics of the process', async () => {
    const token = await admin.api.tokenWith('notificaties.publiceren', 'notificaties.consumeren');
    const forAnyone = ['health_live', 'health_ready', 'metrics'];
    const operations = Object.entries(admin.document.paths)
      .flatMap(([path, item]) => Object.entries(item).map(([method, { operationId }]) => [operationId, method, path]))
      .filter(([operationId]) => !forAnyone.includes(operationId!)) as [string, string, string][];
    expect(operations.length).toBeGreaterThan(50);
    for (const [operationId, method, path] of operations) {
      const body = method === 'get' ? undefined : {};
      const sent = path.replace(/\{\w+\}/g, () => randomUUID());
      const { status, json } = await admin.call(method.toUpperCase(), sent, { token, body });
      expect([operationId, status, json.code]).toEqual([operationId, 403, 'permission_denied']);
    }
  });

  it('describes no route of the Notificaties API, which has a document of its own', () => {
    expect(
      Object.keys(admin.document.paths).filter((path) => !/^\/(admin\/v1\/|health\/|metrics$)/.test(path)),
    ).toEqual([]);
  });

  it('says of every parameter whether it is required', () => {
    const parameters = Object.values(admin.document.paths)
      .flatMap((path) => Object.values(path))
      .flatMap((operation) => operation.parameters ?? []);
    expect(parameters.length).toBeGreaterThan(20);
    expect(parameters.filter(({ required }) => typeof required !== 'boolean')).toEqual([]);
  });

  it('gives every operation an id of its own and defines every schema it names', () => {
    const operations = Object.values(admin.document.paths).flatMap((path) => Object.values(path));
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const named = [...JSON.stringify(admin.document).matchAll(/#\/components\/schemas\/(\w+)/g)].map(
      ([, name]) => name,
    );
    expect(Object.keys(admin.document.components.schemas).sort()).toEqual([...new Set(named)].sort());
  });

  it('says of every integer that may not fit 32 bits, there and for the Notificaties API, that it takes 64', async () => {
    const documents = [admin.document, JSON.parse((await get('/api/v1/openapi.json')).text) as object];
    const integers = everySchemaIn(documents).filter(({ type }) => type === 'integer');
    expect(integers.length).toBeGreaterThan(100);
    const isLarge = ({ maximum = Infinity }: Schema) => maximum > 2_147_483_647;
    expect(integers.filter((schema) => isLarge(schema) && schema.format !== 'int64')).toEqual([]);
  });

  it('has no titles of schemas, there and for the Notificaties API: generators name classes by them in place of the names', async () => {
    const nrc = JSON.parse((await get('/api/v1/openapi.json')).text) as typeof admin.document;
    const schemas = [admin.document, nrc].flatMap(({ components }) =>
      Object.entries(components.schemas as Record<string, Schema>),
    );
    expect(schemas.map(([name]) => name)).toEqual(expect.arrayContaining(['Message', 'FilterGroup', 'Subscription']));
    expect(schemas.filter(([, schema]) => 'title' in schema).map(([name]) => name)).toEqual([]);
  });

  it('says of every parameter in a path that it is a UUID', () => {
    const parameters = Object.values(admin.document.paths)
      .flatMap((path) => Object.values(path))
      .flatMap((operation) => operation.parameters ?? [])
      .filter((parameter) => parameter.in === 'path');
    expect(parameters.length).toBeGreaterThan(20);
    expect(parameters.filter(({ schema }) => (schema as Schema).format !== 'uuid')).toEqual([]);
  });

  it('says when to repeat what is refused for now, and what anything may be answered', () => {
    const described = Object.entries(admin.document.paths).filter(([path]) => path.startsWith('/admin/'));
    const operations = described.flatMap(([, path]) => Object.entries(path));
    expect(operations.length).toBeGreaterThan(50);
    for (const [method, { operationId, responses, parameters = [] }] of operations) {
      const of = (status: number) => responses[status] as { headers?: object } | undefined;
      expect([operationId, of(500) !== undefined, of(413) !== undefined]).toEqual([
        operationId,
        true,
        method !== 'get',
      ]);
      for (const status of [429, 503]) expect(of(status)?.headers).toHaveProperty('Retry-After');
      if (method === 'get') continue;
      expect(parameters.map(({ name }) => name)).toContain('X-Request-Id');
      const done = Object.keys(responses).filter((status) => Number(status) < 400);
      for (const status of done) expect(of(Number(status))?.headers).toHaveProperty('X-Request-Id');
    }
    const { post } = admin.document.paths['/admin/v1/subscriptions']!;
    expect(post!.responses[409]).toHaveProperty('headers.Retry-After');
  });

  it('is right about a body that is too large, also where an operation takes none', async () => {
    const body = ' '.repeat(3_000_000);
    expect((await admin.post(`/admin/v1/subscriptions/${randomUUID()}/resume`, body)).status).toBe(413);
  });

  it('has no schema of a name that generated clients have for a class of their own', () => {
    const own = ['Configuration', 'ApiClient', 'ApiException', 'ApiResponse', 'Model', 'Error', 'Object', 'File'];
    expect(own.filter((name) => name in admin.document.components.schemas)).toEqual([]);
  });

  it('has no schema that only stands for another one: generators of clients give up on the operations that use it', () => {
    const schemas = Object.entries(admin.document.components.schemas as Record<string, object>);
    expect(schemas.filter(([, schema]) => Object.keys(schema).join() === 'allOf').map(([name]) => name)).toEqual([]);
  });

  describe('the console, which is served beside it', () => {
    const page = (path: string, headers: Record<string, string> = { accept: 'text/html' }) =>
      fetch(admin.api.origin + path, { headers, redirect: 'manual' });

    it.each(['/console/', '/console/overview', '/console/notifications/1'])(
      'has its page at %s, under a policy that allows no script in it',
      async (path) => {
        const answer = await page(path);
        expect(answer.status).toBe(200);
        expect(answer.headers.get('cache-control')).toBe('no-store');
        const policy = answer.headers.get('content-security-policy') ?? '';
        const nonce = /'nonce-([^']+)'/.exec(policy)?.[1];
        expect(policy).toContain("script-src 'self';");
        const text = await answer.text();
        expect(text).toContain(`nonce="${nonce}"`);
        expect(text).not.toMatch(/<script(?![^>]* src=)|__\w+__/);
      },
    );

    it('leads from its name without a slash to the page, also behind a prefix', async () => {
      const answer = await page('/console');
      expect([answer.status, answer.headers.get('location')]).toEqual([308, 'console/']);
    });

    it('sends its files compressed, to be kept for a year', async () => {
      const [, file] = /src="\.\/(assets\/index-[^"]+\.js)"/.exec(await (await page('/console/')).text()) ?? [];
      const answer = await page(`/console/${file}`, { 'accept-encoding': 'br' });
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        'content-encoding': 'br',
        'cache-control': 'public, max-age=31536000, immutable',
        vary: expect.stringContaining('Accept-Encoding'),
      });
    });

    it('lets a browser keep no file without asking that another version may have by the same name', async () => {
      const [all, named] = await Promise.all(['dist', 'public'].map((folder) => readdir(`web/${folder}/assets`)));
      const files = all!.filter((name) => !/\.(br|gz)$/.test(name));
      expect(files.length).toBeGreaterThan(named!.length);
      for (const name of files)
        for (const encoding of ['br', 'identity']) {
          const answer = await page(`/console/assets/${name}`, { 'accept-encoding': encoding });
          await answer.body?.cancel();
          const isNamed = named!.includes(name);
          const { status, headers } = answer;
          expect([name, status, headers.get('cache-control'), headers.has('etag')]).toEqual([
            ...[name, 200],
            isNamed ? 'no-cache' : 'public, max-age=31536000, immutable',
            true,
          ]);
        }
    });

    it('names no file as it was called while browsers were told to keep it for a year', async () => {
      const text = await (await page('/console/')).text();
      const addresses = [...text.matchAll(/"(assets\/(?:heraut\.svg|color-scheme\.js)[^"]*)"/g)].map(
        ([, path]) => path,
      );
      expect(addresses).toEqual(['assets/heraut.svg?2', 'assets/color-scheme.js?2']);
      for (const path of addresses) {
        const answer = await page(`/console/${path}`);
        await answer.body?.cancel();
        expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'no-cache']);
      }
    });

    it('answers no page in place of a file that is not there', async () => {
      expect((await page('/console/assets/gone.js')).status).toBe(404);
      expect((await page('/console/gone.js', { accept: 'text/javascript' })).status).toBe(404);
    });
  });
});

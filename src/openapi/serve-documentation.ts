import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { stringify } from 'yaml';
import { documentationPolicy } from '../infra/http/security-headers.js';
import { describeApis, type DescribedApi } from './describe-apis.js';

/** Serves each API's document, and a page that shows it and tries it out. Nothing on the page comes from elsewhere. */
export function serveDocumentation(app: NestFastifyApplication, apis: readonly DescribedApi[]): void {
  const server = app.getHttpAdapter().getInstance();
  // Built at the first request: most processes never get one.
  let documents: Map<DescribedApi, OpenAPIObject> | undefined;
  const documentOf = (api: DescribedApi): OpenAPIObject => {
    documents ??= new Map(
      describeApis(app, apis).map((document, nr) => [apis[nr]!, below(server.pathPrefix, document)]),
    );
    return documents.get(api)!;
  };
  for (const api of apis) {
    serveFiles(server, api, () => documentOf(api));
    server.addHook('onRoute', (route) => {
      if (![api.page, `${api.page}/`, `${api.page}/index.html`].includes(route.url)) return;
      route.onRequest = [...[route.onRequest ?? []].flat(), allowPage];
    });
    SwaggerModule.setup(api.page, app, () => documentOf(api), {
      raw: false,
      customSiteTitle: api.outline.info.title,
      // Its badge would send the document to a server elsewhere.
      swaggerOptions: { validatorUrl: 'none' },
    });
  }
}

/** A client finds the paths of a document below its server's URL, which may be a path. */
const below = (prefix: string, document: OpenAPIObject): OpenAPIObject =>
  prefix === '' ? document : { ...document, servers: [{ url: prefix + (document.servers?.[0]?.url ?? '') }] };

/** The page may do what no other answer may. */
const allowPage: onRequestHookHandler = (_request, reply, done) => {
  void reply.header('content-security-policy', documentationPolicy);
  done();
};

/**
 * Routes of the server itself, not of a controller: those refuse a caller that does not accept JSON. Each text is made
 * once and kept: anyone may ask for it without a token, and to write the YAML takes a tenth of a second in which the
 * process does nothing else.
 */
export function serveFiles(
  server: FastifyInstance,
  { json, yaml }: Pick<DescribedApi, 'json' | 'yaml'>,
  document: () => OpenAPIObject,
): void {
  let [jsonText, yamlText]: (Buffer | undefined)[] = [];
  // For every origin: a document is no secret, and tools in a browser read it.
  const open = (reply: FastifyReply) => reply.header('access-control-allow-origin', '*');
  const asJson = (reply: FastifyReply) =>
    open(reply)
      .type('application/json; charset=utf-8')
      .send((jsonText ??= Buffer.from(JSON.stringify(document()))));
  const asYaml = (reply: FastifyReply) =>
    open(reply)
      .type('application/yaml; charset=utf-8')
      .send((yamlText ??= Buffer.from(stringify(document(), { aliasDuplicateObjects: false }))));
  for (const path of json) server.get(path, (_request, reply) => asJson(reply));
  for (const path of yaml) {
    server.get(path, ({ query }: FastifyRequest, reply) =>
      (query as { format?: unknown }).format === 'json' ? asJson(reply) : asYaml(reply),
    );
  }
}

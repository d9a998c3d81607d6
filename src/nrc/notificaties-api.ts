import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { baseUrlOf } from '../infra/http/origin.js';
import { openApiVersion, type DescribedApi } from '../openapi/describe-apis.js';
import { apiPath, apiVersion } from './nrc-dialect.js';
import { securityScheme } from './nrc-operation.js';

const resources = {
  kanaal: 'The channels that notificaties are published on.',
  abonnement: 'The subscriptions: a callback, and the notificaties it gets.',
  notificaties: 'Publishing.',
};

const description = `
Publish a notification once; every abonnement that matches gets it at its webhook, at least once, or at most once where
that was asked for.

Every call needs a JSON Web Token, signed with HS256, with the claims \`client_id\` and \`iat\`.
`;

/** The Notificaties API, for publishers and subscribers, as this server speaks it. */
export const notificatiesApi: DescribedApi = {
  base: apiPath,
  outline: {
    openapi: openApiVersion,
    info: { title: 'Notificaties API', description, version: apiVersion },
    servers: [{ url: apiPath }],
    security: [{ [securityScheme]: [] }],
    tags: Object.entries(resources).map(([name, text]) => ({ name, description: text })),
    components: { securitySchemes: { [securityScheme]: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } } },
  },
  page: `${apiPath}/schema`,
  // The second of each is where clients made for older servers look; one cannot make a single call without it.
  json: [`${apiPath}/openapi.json`, `${apiPath}/schema/openapi.json`],
  yaml: [`${apiPath}/openapi.yaml`, `${apiPath}/schema/openapi.yaml`],
};

/**
 * The root of the API, which lists its resources. A route of the server itself, not of a controller: Nest removes the
 * slash at the end of a path.
 */
export function serveResourceList(app: NestFastifyApplication): void {
  app
    .getHttpAdapter()
    .getInstance()
    .get(`${apiPath}/`, (request, reply) => {
      const names = Object.keys(resources).toSorted();
      void reply.header('access-control-allow-origin', '*').header('cache-control', 'no-store');
      return Object.fromEntries(names.map((name) => [name, `${baseUrlOf(request)}${apiPath}/${name}`]));
    });
}

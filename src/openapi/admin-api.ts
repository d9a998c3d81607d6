import { openApiVersion, type DescribedApi } from './describe-apis.js';

const description = `
Operating Heraut: credentials, channels, subscriptions, deliveries, retry policy, health, metrics. Every call but those of
health and metrics needs a bearer token (HS256)
of a superuser; every error is \`application/problem+json\`.

Publishers and subscribers call the Notificaties API. Its own document is at \`/api/v1/schema/\` of the address that they call.
`;

/** The API for operators: every controller that belongs to no other API. */
export const adminApi: DescribedApi = {
  base: '',
  outline: {
    openapi: openApiVersion,
    info: { title: 'Heraut admin API', description, version: '1' },
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } } },
  },
  otherPaths: {
    // Served beside the controllers (src/infra/http/metrics.ts).
    '/metrics': {
      get: {
        operationId: 'metrics',
        summary:
          'The counters since the start, of all processes of `PROCESSES` together, in the text format of Prometheus.',
        tags: ['health'],
        responses: {
          200: { description: 'The counters.', content: { 'text/plain': { schema: { type: 'string' } } } },
        },
      },
    },
  },
  page: '/docs',
  json: ['/docs/openapi.json'],
  yaml: ['/docs/openapi.yaml'],
};

import { operation, type PathItem } from './nrc-operation.js';
import { nrcSchemas, type Schema } from './nrc-schemas.js';

const publish = 'notificaties.publiceren';
const consume = 'notificaties.consumeren';

const uuidParameter: Schema = {
  name: 'uuid',
  in: 'path',
  required: true,
  description: 'The last part of the `url` of the resource (UUID version 4).',
  schema: { type: 'string', format: 'uuid' },
};

const location: Schema = {
  Location: { required: true, schema: { type: 'string', format: 'uri' }, description: 'Its url.' },
};

const either = [publish, consume];

const kanaal: Record<string, PathItem> = {
  '/kanaal': {
    get: operation('kanaal', {
      id: 'kanaal_list',
      summary: 'List the kanalen',
      description: 'All of them, in the order of their names.',
      scopes: either,
      status: 200,
      answer: '[Kanaal]',
      parameters: [
        { name: 'naam', in: 'query', description: 'Only the one with exactly this name.', schema: { type: 'string' } },
      ],
      problems: [400],
    }),
    post: operation('kanaal', {
      id: 'kanaal_create',
      summary: 'Create a kanaal',
      description: 'The name must be free.',
      scopes: [publish],
      body: 'Kanaal',
      status: 201,
      answer: 'Kanaal',
      headers: location,
      problems: [],
    }),
  },
  '/kanaal/{uuid}': {
    parameters: [uuidParameter],
    get: operation('kanaal', {
      id: 'kanaal_read',
      summary: 'Read a kanaal',
      description: 'No query parameter is known here, so each is refused.',
      scopes: either,
      status: 200,
      answer: 'Kanaal',
      problems: [400, 404],
    }),
    put: operation('kanaal', {
      id: 'kanaal_update',
      summary: 'Replace a kanaal',
      description: 'naam must be the present one. What is left out gets its default.',
      scopes: [publish],
      body: 'Kanaal',
      status: 200,
      answer: 'Kanaal',
      problems: [404],
    }),
    patch: operation('kanaal', {
      id: 'kanaal_partial_update',
      summary: 'Change a kanaal',
      description: 'What is left out stays as it is; naam cannot be changed.',
      scopes: [publish],
      body: 'Kanaal',
      status: 200,
      answer: 'Kanaal',
      problems: [404],
    }),
  },
};

const abonnement: Record<string, PathItem> = {
  '/abonnement': {
    get: operation('abonnement', {
      id: 'abonnement_list',
      summary: 'List the abonnementen',
      description: 'All of them, whoever created them, the oldest first.',
      scopes: either,
      status: 200,
      answer: '[Abonnement]',
      problems: [400],
    }),
    post: operation('abonnement', {
      id: 'abonnement_create',
      summary: 'Create an abonnement',
      description:
        'The callback is called twice, with a message on kanaal `test`: without authorization, which it must refuse, and with `auth`, which it must accept.',
      scopes: [consume],
      body: 'Abonnement',
      status: 201,
      answer: 'Abonnement',
      headers: location,
      problems: [],
    }),
  },
  '/abonnement/{uuid}': {
    parameters: [uuidParameter],
    get: operation('abonnement', {
      id: 'abonnement_read',
      summary: 'Read an abonnement',
      description: 'No query parameter is known here, so each is refused.',
      scopes: either,
      status: 200,
      answer: 'Abonnement',
      problems: [400, 404],
    }),
    put: operation('abonnement', {
      id: 'abonnement_update',
      summary: 'Replace an abonnement',
      description:
        'Only for its creator. The callback is called again when its URL or `auth` changes, or after it answered 410.',
      scopes: [consume],
      body: 'Abonnement',
      status: 200,
      answer: 'Abonnement',
      problems: [404],
    }),
    patch: operation('abonnement', {
      id: 'abonnement_partial_update',
      summary: 'Change an abonnement',
      description: 'Only for its creator. What is left out stays as it is, `auth` and kanalen included.',
      scopes: [consume],
      body: 'Abonnement',
      status: 200,
      answer: 'Abonnement',
      problems: [404],
    }),
    delete: operation('abonnement', {
      id: 'abonnement_delete',
      summary: 'Delete an abonnement',
      description: 'Only for its creator. What is not delivered yet is cancelled.',
      scopes: [consume],
      status: 204,
      problems: [404],
    }),
  },
};

const notificationId: Schema = {
  'Notification-Id': {
    schema: { type: 'string', format: 'uuid' },
    required: true,
    description: 'Its id; receivers get it as `webhook-id`.',
  },
};

const duplicateOf: Schema = {
  'Duplicate-Of': {
    schema: { type: 'string', format: 'uuid' },
    description:
      'Only where the kanaal has rules for that: the notificatie with the same content that was accepted before. This one is not sent.',
  },
};

const replayed: Schema = {
  'Idempotent-Replayed': {
    schema: { type: 'string', enum: ['true'] },
    description: 'The same request was made before under this key; this is its answer, and nothing was done now.',
  },
};

const deliverAfter: Schema = {
  name: 'Deliver-After',
  in: 'header',
  description: 'RFC 3339. Receivers get it at this moment or later; it is accepted now. At most a year ahead.',
  schema: { type: 'string', format: 'date-time' },
};

const idempotencyKey: Schema = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'However often the request is repeated under the same key, it publishes once. 1 to 255 printable ASCII characters, quoted or bare; another application may use the same.',
  schema: { type: 'string', minLength: 1, maxLength: 257 },
};

const keyParameter: Schema = {
  name: 'key',
  in: 'path',
  required: true,
  description: 'Chosen by the publisher; 1 to 255 printable ASCII characters.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
};

const notificaties: Record<string, PathItem> = {
  '/notificaties': {
    post: operation('notificaties', {
      id: 'notificaties_create',
      summary: 'Publish a notificatie',
      description:
        'The answer comes when it is stored for every abonnement that matches, and shows what receivers get.',
      scopes: [publish],
      parameters: [idempotencyKey, deliverAfter],
      body: 'Message',
      status: 201,
      answer: 'Message',
      headers: { ...notificationId, ...duplicateOf, ...replayed },
      problems: [409, 422],
    }),
  },
  '/notificaties/{key}': {
    parameters: [keyParameter],
    put: operation('notificaties', {
      id: 'notificaties_put',
      summary: 'Publish a notificatie under a key',
      description:
        'Once: the same content again changes nothing. Other content takes its place as long as the notificatie waits for its `Deliver-After`; afterwards it is refused with 409.',
      scopes: [publish],
      parameters: [deliverAfter],
      body: 'Message',
      status: 201,
      answer: 'Message',
      headers: { ...notificationId, ...duplicateOf },
      also: {
        200: {
          description: 'It was there: with the same content, or with other content that has been replaced.',
          headers: { ...notificationId, ...duplicateOf, ...replayed },
        },
      },
      problems: [409],
    }),
  },
};

/** The Notificaties API as this server speaks it. */
export const nrcDocument = {
  openapi: '3.0.3',
  info: {
    title: 'Notificaties API',
    description:
      'Publish a notification once; every abonnement that matches gets it at its webhook, at least once, or at most once where that was asked for.\n\n' +
      'Every call needs a JSON Web Token, signed with HS256, with the claims `client_id` and `iat`.',
    version: '1.0.1',
  },
  servers: [{ url: '/api/v1' }],
  security: [{ 'JWT-Claims': [] }],
  tags: [
    { name: 'kanaal', description: 'What may be published.' },
    { name: 'abonnement', description: 'Who wants what.' },
    { name: 'notificaties', description: 'Publishing.' },
  ],
  paths: { ...kanaal, ...abonnement, ...notificaties },
  components: {
    securitySchemes: { 'JWT-Claims': { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
    schemas: nrcSchemas,
  },
};

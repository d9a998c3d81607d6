import { nrcSchemas, type Schema } from './nrc-schemas.js';

export interface Operation {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  security: Record<string, string[]>[];
  parameters?: Schema[];
  requestBody?: Schema;
  responses: Record<string, Schema>;
}

export type PathItem = { parameters?: Schema[] } & Partial<
  Record<'get' | 'post' | 'put' | 'patch' | 'delete', Operation>
>;

interface Outline {
  id: string;
  summary: string;
  description: string;
  /** Any of these scopes is enough. */
  scopes: string[];
  body?: string;
  status: number;
  /** Name of the answer's schema; `[Name]` for a list of them; none: there is no body. */
  answer?: string;
  headers?: Schema;
  query?: Schema[];
  /** Statuses of problems beside those that every operation has. */
  problems: number[];
}

const publish = 'notificaties.publiceren';
const consume = 'notificaties.consumeren';

const versionHeader = { schema: { type: 'string' }, description: 'The version of the standard that is served.' };

const problemTexts: Record<number, string> = {
  400: 'The input is not valid, or is not JSON.',
  401: 'Reserved by the standard; this server answers 403.',
  403: 'The token is missing or not valid, or does not allow this.',
  404: 'There is no such resource.',
  406: 'The answer would be JSON, which Accept excludes.',
  413: 'The body is too large.',
  415: 'The body is not announced as application/json in UTF-8.',
  500: 'A fault of this server.',
  503: 'Nothing was done; repeat it after Retry-After.',
};

const reference = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

const answerSchema = (answer: string): Schema =>
  answer.startsWith('[') ? { type: 'array', items: reference(answer.slice(1, -1)) } : reference(answer);

function problemResponse(status: number): Schema {
  // What cannot be read has no fields to name, so a 400 is either of the two.
  const schema = status === 400 ? { anyOf: [reference('ValidatieFout'), reference('Fout')] } : reference('Fout');
  return {
    description: problemTexts[status],
    headers: { 'API-version': versionHeader },
    content: { 'application/problem+json': { schema } },
  };
}

function operation(tag: string, outline: Outline): Operation {
  const { id, summary, description, scopes, body, status, answer, headers, query, problems } = outline;
  const bodyProblems = body === undefined ? [] : [400, 413, 415];
  const statuses = [...problems, ...bodyProblems, 401, 403, 406, 500, 503].sort((one, other) => one - other);
  return {
    operationId: id,
    summary,
    description: `${description} Needs the scope \`${scopes.join('` or `')}\`.`,
    tags: [tag],
    security: [{ 'JWT-Claims': [] }],
    ...(query && { parameters: query }),
    ...(body !== undefined && {
      requestBody: { required: true, content: { 'application/json': { schema: reference(body) } } },
    }),
    responses: {
      [status]: {
        description: answer === undefined ? 'Done; there is nothing to say.' : 'Done.',
        headers: { 'API-version': versionHeader, ...headers },
        ...(answer !== undefined && { content: { 'application/json': { schema: answerSchema(answer) } } }),
      },
      ...Object.fromEntries(statuses.map((problem) => [problem, problemResponse(problem)])),
    },
  };
}

const uuidParameter: Schema = {
  name: 'uuid',
  in: 'path',
  required: true,
  description: 'The last part of the `url` of the resource (UUID version 4).',
  schema: { type: 'string', format: 'uuid' },
};

const location: Schema = { Location: { schema: { type: 'string', format: 'uri' }, description: 'Its url.' } };

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
      query: [
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
      description: 'Only for its creator. The callback is called again when its URL or `auth` changes.',
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

const notificaties: Record<string, PathItem> = {
  '/notificaties': {
    post: operation('notificaties', {
      id: 'notificaties_create',
      summary: 'Publish a notificatie',
      description:
        'The answer comes when it is stored for every abonnement that matches, and shows what receivers get.',
      scopes: [publish],
      body: 'Message',
      status: 201,
      answer: 'Message',
      headers: {
        'Notification-Id': {
          schema: { type: 'string', format: 'uuid' },
          description: 'Its id; receivers get it as `webhook-id`.',
        },
      },
      problems: [],
    }),
  },
};

/** The Notificaties API as this server speaks it. */
export const nrcDocument = {
  openapi: '3.0.3',
  info: {
    title: 'Notificaties API',
    description:
      'Publish a notification once; every abonnement that matches gets it at its webhook, at least once.\n\n' +
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

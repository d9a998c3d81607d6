import type { Schema } from './nrc-schemas.js';

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
  /** What the query, and what headers beside `Authorization`, may say. */
  parameters?: Schema[];
  /** Other successes, with an answer of the same form. */
  also?: Record<number, { description: string; headers?: Schema }>;
  /** Statuses of problems beside those that every operation has. */
  problems: number[];
}

const versionHeader = {
  required: true,
  schema: { type: 'string' },
  description: 'The version of the standard that is served.',
};

const problemTexts: Record<number, string> = {
  400: 'The input is not valid, or is not JSON.',
  401: 'Reserved by the standard; this server answers 403.',
  403: 'The token is missing or not valid, or does not allow this.',
  404: 'There is no such resource.',
  406: 'The answer would be JSON, which Accept excludes.',
  409: 'The first request with this key is still running, or what it made was sent and cannot be replaced any more.',
  413: 'The body is too large.',
  415: 'The body is not announced as application/json in UTF-8.',
  422: 'The Idempotency-Key was used before, for another notificatie.',
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

function success(description: string, headers: Schema | undefined, answer: string | undefined): Schema {
  return {
    description,
    headers: { 'API-version': versionHeader, ...headers },
    ...(answer !== undefined && { content: { 'application/json': { schema: answerSchema(answer) } } }),
  };
}

export function operation(tag: string, outline: Outline): Operation {
  const { id, summary, description, scopes, body, status, answer, headers, parameters, also = {}, problems } = outline;
  const bodyProblems = body === undefined ? [] : [400, 413, 415];
  const statuses = [...problems, ...bodyProblems, 401, 403, 406, 500, 503].sort((one, other) => one - other);
  return {
    operationId: id,
    summary,
    description: `${description} Needs the scope \`${scopes.join('` or `')}\`.`,
    tags: [tag],
    security: [{ 'JWT-Claims': [] }],
    ...(parameters && { parameters }),
    ...(body !== undefined && {
      requestBody: { required: true, content: { 'application/json': { schema: reference(body) } } },
    }),
    responses: {
      [status]: success(answer === undefined ? 'Done; there is nothing to say.' : 'Done.', headers, answer),
      ...Object.fromEntries(
        Object.entries(also).map(([other, outcome]) => [other, success(outcome.description, outcome.headers, answer)]),
      ),
      ...Object.fromEntries(statuses.map((problem) => [problem, problemResponse(problem)])),
    },
  };
}

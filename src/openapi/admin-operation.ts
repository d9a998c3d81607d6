import { applyDecorators, UseGuards, UseInterceptors, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import * as z from 'zod';
import { EntityTagInterceptor } from '../infra/http/entity-tag.interceptor.js';
import { UnparsedBody } from '../infra/http/json-body.pipe.js';
import { KnownQuery } from '../infra/http/known-query.pipe.js';
import { ValidationProblem, wholeInput } from '../infra/http/problem.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { describeOperation, type Answer } from './describe-operation.js';
import { idempotencyKeyHeader, replayedHeader } from './idempotency-headers.js';
import { hasRetryAfter, retryAfterHeader } from './retry-after-header.js';

export interface Operation {
  id: string;
  summary: string;
  description?: string;
  body?: z.ZodType;
  /** The parameters of the query; every other one is refused. */
  query?: z.ZodObject;
  /** Whether it accepts an `Idempotency-Key`. */
  isIdempotent?: boolean;
  status: number;
  /** Of the request. */
  headers?: z.ZodObject;
  /** Not given: the answer has no body. */
  answer?: z.ZodType;
  /** Of the answer, besides `ETag` and `Idempotent-Replayed` where the flags below and above say so. */
  answerHeaders?: z.ZodObject;
  /** Whether the answer is a resource as it is now, and so has its `ETag`. */
  hasEntityTag?: boolean;
  /** Whether its handler honours `If-Match` (`requireMatch`). */
  honoursIfMatch?: boolean;
  /** Not given: application/json. */
  mediaType?: string;
  /** Other answers that are no problems, by status. */
  otherAnswers?: Record<number, Answer>;
  /** Status → when, besides those that every operation can answer. */
  problems?: Record<number, string>;
}

const problemOutput = z
  .object({
    type: z.url().describe('Address of a page that explains this class of problem.'),
    code: z.string().describe('Stable; docs/errors.md lists them.'),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    instance: z
      .string()
      .describe(
        '`urn:uuid:…`; the log has the same: of a 5xx at level error, of a 4xx at level debug but for a sample.',
      ),
    invalidParams: z
      .array(z.object({ name: z.string(), code: z.string(), reason: z.string() }))
      .optional()
      .describe('With code `invalid`: each field that is wrong.'),
  })
  .meta({ id: 'Problem' });

const excludedByAccept = 'The answer would be JSON, which Accept excludes.';
const everywhere = {
  400: 'A field or a query parameter is unknown or wrong. Nothing was done.',
  401: '`not-signed-in`: the session of a user is missing, or over. A request without a token that is not of the console is answered 403.',
  403: 'The token is missing, not valid, or no superuser’s. In a session: the user’s role is too low (`role-too-low`), or the change does not come from a page of the console (`cross-site`).',
  406: excludedByAccept,
  429: 'Too many requests of this address, or of this application, were answered 403 in this minute, or too many of this caller are not answered yet; repeat it after Retry-After.',
  500: 'A fault of Heraut; the log has more of it under its `instance`.',
  503: 'The database is out of reach; Retry-After says when to try again.',
};
const withKey = {
  409: '`idempotency-key-in-flight`: the first request with this key is still running.',
  422: '`idempotency-key-reused`: the key was used before, for another request.',
};
const tooLarge = 'The body is larger than BODY_LIMIT_BYTES.';
const withBody = {
  415: 'The body is not sent as application/json.',
};

const whenChanged = {
  412: '`changed-meanwhile`: the resource is not as `If-Match` says. Nothing was done; read it again.',
};

const ifMatchHeader = z
  .string()
  .optional()
  .describe(
    'The `ETag` of the resource as it was read: it is changed only if it is still as it was. Left out: however it is now.',
  );
const entityTagHeader = z.string().describe('Of the resource as the answer shows it, for the `If-Match` of a change.');

/**
 * One operation of the admin API: its status, its part of the OpenAPI document, and the refusal of unknown query
 * parameters, and of a body where it takes none: a misspelt filter that is ignored would list, or change, more than was
 * meant.
 */
export function AdminOperation(operation: Operation): MethodDecorator {
  const { id, summary, description, body, query, isIdempotent, hasEntityTag, honoursIfMatch } = operation;
  const { status, answer, mediaType } = operation;
  const problems = joined(
    operation.problems,
    everywhere,
    body && withBody,
    isIdempotent && withKey,
    honoursIfMatch && whenChanged,
  );
  const headers = z.object({
    ...operation.headers?.shape,
    ...(isIdempotent && { 'Idempotency-Key': idempotencyKeyHeader }),
    ...(honoursIfMatch && { 'If-Match': ifMatchHeader }),
  });
  const answerHeaders = z.object({
    ...operation.answerHeaders?.shape,
    ...(isIdempotent && { 'Idempotent-Replayed': replayedHeader }),
    ...(hasEntityTag && { ETag: entityTagHeader }),
  });
  const decorators = (path: z.ZodObject) => [
    UseGuards(new KnownQueryGuard(Object.keys(query?.shape ?? {})), ...(body ? [] : [new NoBodyGuard()])),
    ...(hasEntityTag ? [UseInterceptors(EntityTagInterceptor)] : []),
    describeOperation({
      id,
      summary,
      description,
      path,
      query,
      headers,
      body,
      status,
      answers: {
        [status]: {
          description: answer ? 'Done.' : 'Done; the answer has no body.',
          headers: Object.keys(answerHeaders.shape).length > 0 ? answerHeaders : undefined,
          schema: answer,
          mediaType,
        },
        ...operation.otherAnswers,
        ...Object.fromEntries(
          Object.entries(problems).map(([code, when]) => [
            code,
            problemAnswer(when, hasRetryAfter(Number(code), isIdempotent === true) ? retryAfterHeader : undefined),
          ]),
        ),
      },
      answersToBody: { 413: problemAnswer(tooLarge) },
    }),
  ];
  return (target, key, descriptor) => applyDecorators(...decorators(idsInPath(target, key)))(target, key, descriptor);
}

interface RouteArgument {
  data?: unknown;
  pipes: unknown[];
}

/** The parameters of the path that a handler takes through `ResourceId`, in its order. */
function idsInPath(controller: object, handler: string | symbol): z.ZodObject {
  const taken = Reflect.getMetadata(ROUTE_ARGS_METADATA, controller.constructor, handler) as object | undefined;
  const inOrder = Object.entries((taken ?? {}) as Record<string, RouteArgument>).toSorted(([a], [b]) =>
    a < b ? -1 : 1,
  );
  const ids = inOrder.filter(([, { pipes }]) => pipes.includes(ResourceId)).map(([, { data }]) => String(data));
  return z.object(Object.fromEntries(ids.map((name) => [name, z.string().meta({ format: 'uuid' })])));
}

/** A status that several of them have has the texts of all. */
function joined(...ofEach: readonly (Readonly<Record<number, string>> | false | undefined)[]): Record<number, string> {
  const problems: Record<number, string> = {};
  for (const some of ofEach)
    for (const [status, when] of Object.entries(some || {}))
      problems[Number(status)] = problems[Number(status)] === undefined ? when : `${problems[Number(status)]} ${when}`;
  return problems;
}

const problemAnswer = (description: string, headers?: z.ZodObject): Answer => ({
  description,
  ...(headers && { headers }),
  schema: problemOutput,
  mediaType: 'application/problem+json',
});

/** Of every operation that answers JSON, whether it needs a token or not. */
export const notAcceptable = problemAnswer(excludedByAccept);

/** Runs before the body is read, and also for operations that read no query. */
class KnownQueryGuard implements CanActivate {
  private readonly known: KnownQuery;

  constructor(names: string[]) {
    this.known = new KnownQuery(...names);
  }

  canActivate(context: ExecutionContext): boolean {
    this.known.transform(context.switchToHttp().getRequest<{ query: Record<string, string> }>().query);
    return true;
  }
}

/** Clients that send a body with every POST send one of these. */
const nothing: ReadonlySet<string> = new Set(['', '{}', 'null']);

/** A caller that sends a secret to the operation that makes a new one, say, means another operation. */
class NoBodyGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { body } = context.switchToHttp().getRequest<{ body: unknown }>();
    if (!(body instanceof UnparsedBody) || nothing.has(body.bytes.toString('latin1').trim())) return true;
    const reason = 'This operation takes no body.';
    throw new ValidationProblem([{ name: wholeInput, code: 'unknown', reason }]);
  }
}

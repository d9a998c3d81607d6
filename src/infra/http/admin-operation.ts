import { applyDecorators, HttpCode, UseGuards, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { ApiBody, ApiHeader, ApiOperation, ApiQuery, ApiResponse, type OpenAPIObject } from '@nestjs/swagger';
import { z } from 'zod';
import { KnownQuery } from './known-query.pipe.js';

type NamedSchemas = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>;
export type OpenApiSchema = Exclude<NamedSchemas[string], { $ref: string }>;

/** A zod schema as OpenAPI 3.0 has it. `side`: what a caller may send, or what the server answers. */
export function openApiSchema(schema: z.ZodType, side: 'input' | 'output'): OpenApiSchema {
  return z.toJSONSchema(schema, { target: 'openapi-3.0', io: side }) as OpenApiSchema;
}

export interface Operation {
  id: string;
  summary: string;
  description?: string;
  /** Name of the body's schema in the document. */
  body?: string;
  /** What the query may hold; every other parameter is refused. */
  query?: z.ZodObject;
  /** Takes an `Idempotency-Key`. */
  isIdempotent?: boolean;
  status: number;
  /** Name of the answer's schema; none: the answer has no body. */
  answer?: string;
  /** Status → when, besides those that every operation can answer. */
  problems?: Record<number, string>;
}

const everywhere = {
  400: 'A field or a query parameter is unknown or wrong. Nothing was done.',
  403: 'The token is missing, not valid, or no superuser’s.',
  503: 'The database is out of reach; Retry-After says when to try again.',
};
const withKey = {
  409: '`idempotency-key-in-flight`: the first request with this key is still running.',
  422: '`idempotency-key-reused`: the key was used before, for another request.',
};
const replayed = {
  'Idempotent-Replayed': {
    description: '`true` when the key was used before, for the same request: nothing was done now.',
    schema: { type: 'string' as const, enum: ['true'] },
  },
};
const keyHeader = {
  name: 'Idempotency-Key',
  required: false,
  description: 'Repeated under the same key the request is carried out once. 1 to 255 printable ASCII characters.',
  schema: { type: 'string' as const, minLength: 1, maxLength: 257 },
};
const withBody = {
  413: 'The body is larger than BODY_LIMIT_BYTES.',
  415: 'The body is not sent as application/json.',
};

/**
 * One operation of the admin API: its status, what its OpenAPI document says, and that a query parameter it does not know
 * is refused: a misspelt filter that is ignored would list, or change, more than was meant.
 */
export function AdminOperation(operation: Operation): MethodDecorator {
  const { body, query, isIdempotent, answer } = operation;
  const problems = {
    ...operation.problems,
    ...everywhere,
    ...(body ? withBody : {}),
    ...(isIdempotent ? withKey : {}),
  };
  const headers = isIdempotent ? replayed : undefined;
  return applyDecorators(
    HttpCode(operation.status),
    UseGuards(new KnownQueryGuard(Object.keys(query?.shape ?? {}))),
    ApiOperation({ operationId: operation.id, summary: operation.summary, description: operation.description }),
    ...(body ? [ApiBody({ required: true, schema: schemaRef(body) })] : []),
    ...(query ? queryParameters(query) : []),
    ...(isIdempotent ? [ApiHeader(keyHeader)] : []),
    answer
      ? ApiResponse({ status: operation.status, description: 'Done.', headers, ...content('application/json', answer) })
      : ApiResponse({ status: operation.status, description: 'Done; there is nothing to say.' }),
    ...Object.entries(problems).map(([status, description]) =>
      ApiResponse({ status: Number(status), description, ...content('application/problem+json', 'Problem') }),
    ),
  );
}

/** Before the body is looked at, and for operations that read no query at all. */
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

function queryParameters(query: z.ZodObject): MethodDecorator[] {
  const { properties = {}, required = [] } = openApiSchema(query, 'input');
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = property as OpenApiSchema;
    return ApiQuery({ name, required: required.includes(name), description, schema });
  });
}

const schemaRef = (name: string) => ({ $ref: `#/components/schemas/${name}` });

const content = (mediaType: string, name: string) => ({ content: { [mediaType]: { schema: schemaRef(name) } } });

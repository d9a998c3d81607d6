import { applyDecorators, HttpCode, RequestMethod } from '@nestjs/common';
import { METHOD_METADATA } from '@nestjs/common/constants.js';
import { ApiBody, ApiExtension, ApiHeader, ApiOperation, ApiParam, ApiQuery, ApiResponse } from '@nestjs/swagger';
import * as z from 'zod';
import { answeredRequestIdHeader, notesRequestId, requestIdHeader } from './request-id-headers.js';
import { fieldsOf, openApiSchema, type NamedSchema, type Side } from './schema.js';

export interface Answer {
  /** When this is answered, or its meaning. */
  description: string;
  headers?: z.ZodObject;
  /** Not given: there is no body. */
  schema?: z.ZodType;
  mediaType?: string | undefined;
}

export interface OperationDescription {
  id: string;
  summary: string;
  description?: string;
  path?: z.ZodObject;
  query?: z.ZodObject;
  /** Of the request. */
  headers?: z.ZodObject;
  body?: z.ZodType;
  /** The status of a handler that sets none itself. */
  status: number;
  answers: Record<number, Answer>;
  /** More answers, where the method is one whose body is read, whether it takes one or not. */
  answersToBody?: Record<number, Answer>;
  /** `input` where one schema stands for request and answer, with `readOnly` and `writeOnly` fields. */
  answerSide?: Side;
}

/** Under this key an operation carries the schemas it names, until the document is put together (describe-apis.ts). */
export const namedSchemas = 'x-named-schemas';

/** Operations that are not written into the metadata of their handler yet. */
let undescribed: (() => void)[] = [];

/**
 * The status of a handler, and its part of the OpenAPI document, which comes from the zod schemas beside the handler:
 * it is written by `describeOperations`, as to convert all schemas takes longer than all else that is done when the
 * files are loaded.
 */
export function describeOperation(operation: OperationDescription): MethodDecorator {
  return (target, key, descriptor) => {
    HttpCode(operation.status)(target, key, descriptor);
    undescribed.push(() => {
      // Only now are the decorators above this one, and those of the class, carried out.
      const isReading = Reflect.getMetadata(METHOD_METADATA, descriptor.value as object) === RequestMethod.GET;
      const whole = isReading ? operation : withRequestId(target.constructor, withAnswersToBody(operation));
      asDecorator(whole)(target, key, descriptor);
    });
  };
}

/** Has to be called before the metadata of handlers is read for a document. */
export function describeOperations(): void {
  for (const describe of undescribed) describe();
  undescribed = [];
}

const withAnswersToBody = (operation: OperationDescription): OperationDescription => ({
  ...operation,
  answers: { ...operation.answers, ...operation.answersToBody },
});

function withRequestId(controller: object, operation: OperationDescription): OperationDescription {
  if (!notesRequestId(controller)) return operation;
  const answers = Object.entries(operation.answers).map(([status, answer]) => [
    status,
    Number(status) < 400
      ? { ...answer, headers: z.object({ ...answer.headers?.shape, 'X-Request-Id': answeredRequestIdHeader }) }
      : answer,
  ]);
  return {
    ...operation,
    headers: z.object({ ...operation.headers?.shape, 'X-Request-Id': requestIdHeader }),
    answers: Object.fromEntries(answers) as Record<number, Answer>,
  };
}

function asDecorator(operation: OperationDescription): MethodDecorator {
  const { id, summary, description, path, query, headers, body, answers, answerSide = 'output' } = operation;
  const named: NamedSchema = {};
  const convert = (schema: z.ZodType, side: Side, isAnswer: boolean) => {
    const converted = openApiSchema(schema, side, isAnswer);
    Object.assign(named, converted.named);
    return converted.schema;
  };
  const decorators = [
    ApiOperation({ operationId: id, summary, description }),
    ...fieldsOf(path).map((field) => ApiParam(field)),
    ...fieldsOf(query).map((field) => ApiQuery(field)),
    ...fieldsOf(headers).map((field) => ApiHeader(field)),
    ...(body ? [ApiBody({ required: true, schema: convert(body, 'input', false) })] : []),
    ...Object.entries(answers).map(([code, answer]) =>
      ApiResponse({
        status: Number(code),
        description: answer.description,
        headers:
          answer.headers && Object.fromEntries(fieldsOf(answer.headers).map(({ name, ...rest }) => [name, rest])),
        ...(answer.schema && {
          content: { [answer.mediaType ?? 'application/json']: { schema: convert(answer.schema, answerSide, true) } },
        }),
      }),
    ),
  ];
  return applyDecorators(...decorators, ApiExtension(namedSchemas, named));
}

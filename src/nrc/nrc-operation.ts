import { applyDecorators } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import * as z from 'zod';
import { RequireScope } from '../auth/auth.decorators.js';
import type { Scope } from '../auth/scopes.js';
import { describeOperation, type Answer } from '../openapi/describe-operation.js';
import { hasRetryAfter, retryAfterHeader } from '../openapi/retry-after-header.js';
import { fout, validatieFout } from './fout.js';

/** Name of the way of authentication in the standard's document. */
export const securityScheme = 'JWT-Claims';

interface Outline {
  id: string;
  /** The resource it belongs to. */
  tag: string;
  summary: string;
  description: string;
  /** Any of these scopes is enough. */
  scopes: Scope[];
  path?: z.ZodObject;
  query?: z.ZodObject;
  /** Of the request, beside `Authorization`. */
  headers?: z.ZodObject;
  body?: z.ZodType;
  status: number;
  /** Not given: the answer has no body. */
  answer?: z.ZodType;
  answerHeaders?: z.ZodObject;
  /** Other successes, with an answer of the same form. */
  also?: Record<number, { description: string; headers?: z.ZodObject }>;
  /** Statuses of problems beside those that every operation has. */
  problems: number[];
  /** Where the usual text does not say what such a status means here. */
  problemTexts?: Record<number, string>;
}

const usualTexts: Record<number, string> = {
  400: 'The input is not valid, or is not JSON.',
  401: 'Reserved by the standard; this server answers 403.',
  403: 'The token is missing or not valid, or does not allow this.',
  404: 'There is no such resource.',
  406: 'The answer would be JSON, which Accept excludes.',
  409: 'The first request with this key is still running, or what it made was sent and cannot be replaced any more.',
  413: 'The body is too large.',
  415: 'The body is not announced as application/json in UTF-8.',
  422: 'The Idempotency-Key was used before, for another notificatie.',
  429: 'Too many requests of this address, or of this application, were answered 403 in this minute, or too many of this application are not answered yet; repeat it after Retry-After.',
  500: 'A fault of this server.',
  503: 'It could not be done; repeat it after Retry-After. `detail` says where it may have been done nevertheless.',
};

const versionHeader = z.object({ 'API-version': z.string().describe('The version of the standard that is served.') });

/** One operation of the Notificaties API: its status, the scopes it needs, and what its OpenAPI document says. */
export function NrcOperation(outline: Outline): MethodDecorator {
  const { scopes, body, status, answer, answerHeaders, also = {}, problems, problemTexts, tag, ...rest } = outline;
  const isIdempotent = 'Idempotency-Key' in (outline.headers?.shape ?? {}) || 'key' in (outline.path?.shape ?? {});
  const bodyProblems = body ? [400, 415] : [];
  const success = (description: string, headers: z.ZodObject | undefined): Answer => ({
    description,
    headers: versionHeader.extend(headers?.shape ?? {}),
    schema: answer,
  });
  return applyDecorators(
    RequireScope(...scopes),
    ApiTags(tag),
    ApiSecurity(securityScheme),
    describeOperation({
      ...rest,
      description: `${outline.description} Needs the scope \`${scopes.join('` or `')}\`.`,
      body,
      status,
      // The standard has one schema for both: `url` is only answered, `auth` is only sent, and neither is required.
      answerSide: 'input',
      answers: {
        [status]: success(answer ? 'Done.' : 'Done; the answer has no body.', answerHeaders),
        ...mapValues(also, ({ description, headers }) => success(description, headers)),
        ...Object.fromEntries(
          [...problems, ...bodyProblems, 401, 403, 406, 429, 500, 503].map((code) => [
            code,
            problemAnswer(code, { ...usualTexts, ...problemTexts }, isIdempotent),
          ]),
        ),
      },
      answersToBody: { 413: problemAnswer(413, usualTexts, isIdempotent) },
    }),
  );
}

const problemAnswer = (status: number, texts: Record<number, string>, isIdempotent: boolean): Answer => ({
  description: texts[status]!,
  headers: versionHeader.extend(hasRetryAfter(status, isIdempotent) ? retryAfterHeader.shape : {}),
  // A body that cannot be read has no fields to name, so a 400 is either of the two.
  schema: status === 400 ? z.union([validatieFout, fout]) : fout,
  mediaType: 'application/problem+json',
});

const mapValues = <T, U>(object: Record<string, T>, map: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value)]));

import type { ArgumentMetadata, PipeTransform } from '@nestjs/common';
import { isUtf8 } from 'node:buffer';
import { ParseProblem, UnsupportedMediaTypeProblem, ValidationProblem, wholeInput } from './problem.js';

export type JsonObject = Record<string, unknown>;

/**
 * A body as it came in. It is parsed after the guards have run: a caller that is not allowed learns nothing about the
 * body.
 */
export class UnparsedBody {
  constructor(
    readonly contentType: string | undefined,
    readonly contentEncoding: string | undefined,
    readonly bytes: Buffer,
  ) {}
}

// RFC 8259 §8.1: JSON between systems is UTF-8; US-ASCII is a subset of it. Split rather than matched by one pattern,
// which would try every way to share out a long run of spaces.
function isJson(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true;
  const [mediaType, ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase());
  const charset = parameters.find((parameter) => parameter.startsWith('charset='));
  return mediaType === 'application/json' && (charset === undefined || /^charset="?(utf-?8|us-ascii)"?$/.test(charset));
}

/** Makes every `@Body()` the JSON object that was sent, as `readJsonBody` does. */
export class JsonBodyPipe implements PipeTransform {
  transform(value: unknown, { type }: ArgumentMetadata): unknown {
    return type === 'body' ? readJsonBody(value) : value;
  }
}

/**
 * @param body as the server parsed it: not at all
 * @throws {UnsupportedMediaTypeProblem} for anything that is not announced as JSON
 * @throws {ParseProblem} for a body that is not JSON in UTF-8
 * @throws {ValidationProblem} for JSON that is not an object
 */
export function readJsonBody(body: unknown): JsonObject {
  if (!(body instanceof UnparsedBody)) throw new UnsupportedMediaTypeProblem('The request has no Content-Type.');
  const { contentType, contentEncoding, bytes } = body;
  if (!isJson(contentType)) {
    throw new UnsupportedMediaTypeProblem('The body must be sent as application/json in UTF-8.');
  }
  if (contentEncoding !== undefined && contentEncoding !== 'identity') {
    throw new UnsupportedMediaTypeProblem('The body must be sent without Content-Encoding.');
  }
  if (!isUtf8(bytes)) throw new ParseProblem('The body is not UTF-8.');
  let parsed: unknown;
  try {
    parsed = JSON.parse(bytes.toString());
  } catch (error) {
    throw new ParseProblem('The body is not JSON.', error);
  }
  if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as JsonObject;
  throw new ValidationProblem([{ name: wholeInput, code: 'invalid', reason: 'The body must be a JSON object.' }]);
}

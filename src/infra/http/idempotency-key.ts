import { ClassifiedProblem } from './problem.js';

const printable = /^[\x20-\x7e]{1,255}$/;
const quoted = /^"((?:[^"\\]|\\["\\])*)"$/;

/**
 * The `Idempotency-Key` of a request: a quoted string of structured fields (RFC 8941 §3.3.3) or, as most clients send it,
 * bare. Undefined when there is none.
 * @throws {IdempotencyKeyInvalid}
 */
export function readIdempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  const key = typeof header === 'string' ? unquote(header.trim()) : undefined;
  if (key !== undefined && isRequestKey(key)) return key;
  throw new IdempotencyKeyInvalid();
}

/** Whether a text can be the key of a request. */
export const isRequestKey = (text: string): boolean => printable.test(text) && text.trim() !== '';

function unquote(text: string): string | undefined {
  if (!text.startsWith('"')) return text;
  return quoted.exec(text)?.[1]?.replace(/\\(["\\])/g, '$1');
}

class IdempotencyKeyInvalid extends ClassifiedProblem {
  constructor() {
    const detail = 'Idempotency-Key must be 1 to 255 printable ASCII characters, quoted or bare.';
    super('IdempotencyKeyInvalid', 400, 'idempotency-key-invalid', detail);
  }
}

export class IdempotencyKeyInFlight extends ClassifiedProblem {
  constructor() {
    const detail = 'The first request with this key is still running. Ask again in a moment.';
    super('IdempotencyKeyInFlight', 409, 'idempotency-key-in-flight', detail, { headers: { 'retry-after': '1' } });
  }
}

export class IdempotencyKeyReused extends ClassifiedProblem {
  constructor() {
    const detail = 'This key was used before with another request. Use a new key for a new request.';
    super('IdempotencyKeyReused', 422, 'idempotency-key-reused', detail);
  }
}

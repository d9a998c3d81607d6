import type { FastifyRequest } from 'fastify';
import { LRUCache } from 'lru-cache';
import { createHash } from 'node:crypto';
import { ConflictProblem, ProblemError, UnavailableProblem } from '../infra/http/problem.js';

const printable = /^[\x20-\x7e]{1,255}$/;
const quoted = /^"((?:[^"\\]|\\["\\])*)"$/;

/**
 * The `Idempotency-Key` of a request: a quoted string of structured fields (RFC 8941 §3.3.3) or, as most clients send
 * it, bare. Undefined when there is none.
 * @throws {IdempotencyKeyInvalid}
 */
export function readIdempotencyKey({ headers, raw }: FastifyRequest): string | undefined {
  if (headers['idempotency-key'] === undefined) return undefined;
  // Node joins the values of a header that comes twice; then it is not known which of the two keys is meant.
  const [header = '', ...others] = raw.headersDistinct['idempotency-key'] ?? [];
  const key = others.length === 0 ? unquote(header.trim()) : undefined;
  if (key !== undefined && isRequestKey(key)) return key;
  throw new IdempotencyKeyInvalid();
}

/** Whether a text can be the key of a request. */
export const isRequestKey = (text: string): boolean => printable.test(text) && text.trim() !== '';

/** Tells a repeated request from another one under the same key; the request itself is not stored. */
export const fingerprintOf = (request: string): string => createHash('sha256').update(request).digest('base64url');

interface KeyOfRequest {
  /** Client id: the same key of another application is another key. */
  application: string;
  operation: string;
  key: string;
}

/**
 * Keys remembered as carried out. Under a forgotten key, repetitions that arrive together are refused as in flight, but
 * one.
 */
const maxKnown = 10_000;

/**
 * Until a request with this key was carried out, this process runs one of them at a time and refuses the others. Its
 * repetitions may then run together, by the hundred.
 */
export class RequestsUnderWay {
  private readonly running = new Set<string>();
  private readonly carriedOut = new LRUCache<string, true>({ max: maxKnown });

  /** @throws {IdempotencyKeyInFlight} while another one with this key runs */
  async run<T>({ application, operation, key }: KeyOfRequest, work: () => Promise<T>): Promise<T> {
    const name = JSON.stringify([application, operation, key]);
    if (this.carriedOut.has(name)) return work();
    if (this.running.has(name)) throw new IdempotencyKeyInFlight();
    this.running.add(name);
    try {
      const result = await work();
      this.carriedOut.set(name, true);
      return result;
    } finally {
      this.running.delete(name);
    }
  }
}

function unquote(text: string): string | undefined {
  if (!text.startsWith('"')) return text;
  return quoted.exec(text)?.[1]?.replace(/\\(["\\])/g, '$1');
}

class IdempotencyKeyInvalid extends ProblemError {
  constructor() {
    const detail = 'Idempotency-Key must be 1 to 255 printable ASCII characters, quoted or bare.';
    super('IdempotencyKeyInvalid', 400, 'idempotency-key-invalid', detail);
  }
}

export class IdempotencyKeyInFlight extends ProblemError {
  constructor() {
    const detail = 'The first request with this key is still running. Ask again in a moment.';
    super('IdempotencyKeyInFlight', 409, 'idempotency-key-in-flight', detail, { headers: { 'retry-after': '1' } });
  }
}

/** Its 201 would name a resource that is not there. */
export class DeletedMeanwhile extends ConflictProblem {
  constructor() {
    const detail =
      'The resource that the first request with this key made was deleted. Take a new key to make another.';
    super('deleted-meanwhile', detail);
  }
}

export class IdempotencyKeyReused extends ProblemError {
  constructor() {
    const detail = 'This key was used before with another request. Use a new key for a new request.';
    super('IdempotencyKeyReused', 422, 'idempotency-key-reused', detail);
  }
}

/**
 * As its hash is encrypted with a key that another process has, or that was removed since. Not as with another request:
 * a caller that takes a new key for this one has it carried out a second time.
 */
export class IdempotencyKeyUnreadable extends UnavailableProblem {
  constructor() {
    const detail =
      'Whether this key was used before with this request cannot be decrypted by the process that answers. Nothing was done: repeat it under this key, and look whether it was carried out before you take a new one.';
    super(detail, 10, undefined, 'secret-unreadable');
  }
}

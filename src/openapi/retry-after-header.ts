import * as z from 'zod';

/** Of a refusal that says when to ask again. */
export const retryAfterHeader = z.object({
  'Retry-After': z.int().min(0).max(86_400).optional().describe('Seconds after which to repeat the request.'),
});

/** These have it, and a 409 where the first request with an `Idempotency-Key` is still running. */
export const hasRetryAfter = (status: number, isIdempotent: boolean): boolean =>
  status === 429 || status === 503 || (status === 409 && isIdempotent);

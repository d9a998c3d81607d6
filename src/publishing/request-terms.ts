import { ValidationProblem } from '../infra/http/problem.js';
import { readMoment } from './moment.js';

const longestAheadMs = 366 * 86_400_000;

/**
 * `Deliver-After`: the earliest time at which the notification may be sent (RFC 3339, with an offset). A time in the
 * past is accepted: a request that is repeated later must still be the same request.
 * @returns milliseconds since 1970; null without the header
 * @throws {ValidationProblem}
 */
export function readDeliverAfter(header: string | string[] | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  const text = typeof header === 'string' ? header.trim() : '';
  // RFC 3339 §5.6: unlike ISO 8601 it requires date, time and offset, so that no time zone has to be guessed.
  const isWhole = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(text);
  const moment = isWhole ? readMoment(text) : undefined;
  const reason = !moment
    ? 'Not a moment of RFC 3339, such as 2030-01-31T08:00:00+01:00.'
    : moment.ms > nowMs + longestAheadMs
      ? 'More than a year ahead.'
      : undefined;
  if (reason) throw new ValidationProblem([{ name: 'Deliver-After', code: 'invalid', reason }]);
  return moment!.ms;
}

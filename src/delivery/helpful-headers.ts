import type { IncomingHttpHeaders } from 'node:http';

/** Of a receiver's answer, those that tell who answered, why, and under which number its owner finds it. No cookies. */
const names = [
  'allow',
  'cf-ray',
  'content-length',
  'content-type',
  'date',
  'location',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
  'server',
  'traceresponse',
  'via',
  'www-authenticate',
  'x-amzn-requestid',
  'x-amzn-trace-id',
  'x-correlation-id',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'x-request-id',
];
const maxCharacters = 500;

/** One value each: of a header that came several times, its values in their order, separated by commas. */
export function helpfulHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const helpful: Record<string, string> = {};
  for (const name of names) {
    const value = headers[name];
    if (value === undefined) continue;
    helpful[name] = (Array.isArray(value) ? value.join(', ') : value).slice(0, maxCharacters);
  }
  return helpful;
}

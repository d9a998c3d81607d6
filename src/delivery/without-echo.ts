import { cleanerOf } from '../infra/logging/without-secret.js';
import { readTraceParent } from '../telemetry/trace-parent.js';
import type { WebhookRequest, WebhookResponse } from './webhook-client.js';

/** Headers of a call that hold no secret. All others may: `authorization`, and those of the subscription's own. */
const harmless = new Set(['content-type', 'accept', 'user-agent']);
const isHarmless = (name: string, value: string): boolean =>
  harmless.has(name) || name.startsWith('webhook-') || (name === 'traceparent' && isOfTrace(value));
/** One of the subscription's own headers may have that name, and anything in it. */
const isOfTrace = (value: string): boolean => readTraceParent(value) === value;

/**
 * Some receivers repeat in their errors what they were sent. The kept part of an answer is written to the log and shown
 * to operators, so the secrets of the call are taken out of it, also one that was cut off at its end.
 */
export function withoutEcho(response: WebhookResponse, { headers }: Pick<WebhookRequest, 'headers'>): WebhookResponse {
  if (response.kind !== 'answered' || (response.body === '' && Object.keys(response.headers).length === 0))
    return response;
  const clean = cleanerOf(secretsIn(headers));
  const cleanHeaders = Object.entries(response.headers).map(([name, value]) => [name, clean(value)] as const);
  return { ...response, body: clean(response.body), headers: Object.fromEntries(cleanHeaders) };
}

const secretsIn = (headers: Record<string, string>): string[] =>
  Object.entries(headers)
    .filter(([name, value]) => !isHarmless(name, value))
    .flatMap(([, value]) => [value, ...credentialsIn(value)]);

/** Behind the scheme; of `Basic` also what it says, as a receiver has decoded it. */
function credentialsIn(value: string): string[] {
  const [, scheme, credentials] = /^([^ ]+) +(.+)$/.exec(value) ?? [];
  if (credentials === undefined) return [];
  if (scheme!.toLowerCase() !== 'basic') return [credentials];
  const login = Buffer.from(credentials, 'base64').toString('latin1');
  return [credentials, login, login.slice(login.indexOf(':') + 1)];
}

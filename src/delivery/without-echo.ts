import { shortestSecret, withoutSecret } from '../infra/logging/without-secret.js';
import type { WebhookRequest, WebhookResponse } from './webhook-client.js';

/** Headers of a call that hold no secret. All others may: `authorization`, and those of the subscription's own. */
const harmless = new Set(['content-type', 'accept', 'user-agent']);
const isHarmless = (name: string): boolean => harmless.has(name) || name.startsWith('webhook-');

/**
 * Some receivers repeat in their errors what they were sent. What is kept of an answer is written to the log and shown to operators, so the
 * secrets of the call are taken out of it, also one that was cut off at its end.
 */
export function withoutEcho(response: WebhookResponse, { headers }: Pick<WebhookRequest, 'headers'>): WebhookResponse {
  if (response.kind !== 'answered' || (response.body === '' && Object.keys(response.headers).length === 0))
    return response;
  const secrets = secretsIn(headers);
  const clean = (text: string) => secrets.reduce(withoutSecret, text);
  const cleanHeaders = Object.entries(response.headers).map(([name, value]) => [name, clean(value)] as const);
  return { ...response, body: clean(response.body), headers: Object.fromEntries(cleanHeaders) };
}

/** The longest first: one may be part of another. */
function secretsIn(headers: Record<string, string>): string[] {
  const secrets = Object.entries(headers)
    .filter(([name]) => !isHarmless(name))
    .flatMap(([, value]) => [value, value.slice(value.indexOf(' ') + 1)])
    .flatMap((value) => [value, JSON.stringify(value).slice(1, -1)])
    .filter((value) => value.length >= shortestSecret);
  return [...new Set(secrets)].sort((one, other) => other.length - one.length);
}

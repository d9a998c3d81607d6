import { withoutSecret } from '../infra/logging/without-secret.js';
import { headerValue } from './check-headers.js';
import type { TokenAnswer } from './token-request.node-http.js';
import type { Unavailable } from './unavailable.js';

/** Where the token endpoint does not say how long a token lasts. */
const usualSeconds = 300;
const longestTextShown = 200;

export type TokenResult =
  | { kind: 'token'; token: string; lastsMs: number }
  /** `isRefused`: the client is, and would be again; otherwise the endpoint is in trouble. */
  | ({ kind: 'none' } & Pick<Unavailable, 'reason' | 'isRefused' | 'isOurs'>);

/**
 * The meaning of a token endpoint's answer (RFC 6749 §5).
 * @param secrets are kept out of the reason, should the endpoint repeat them
 */
export function readToken({ status, text }: TokenAnswer, secrets: readonly string[]): TokenResult {
  const answer = objectIn(text);
  if (status !== 200) {
    const { error, error_description: description } = answer ?? {};
    const told = [error, description].filter((each) => typeof each === 'string').join(': ');
    const shown = withoutSecret(told, secrets).slice(0, longestTextShown);
    // A client that asks too much, or too slowly, is not refused as such.
    const isRefused = status >= 400 && status < 500 && status !== 408 && status !== 429;
    return { kind: 'none', reason: `answers HTTP ${status}${shown && ` (${shown})`}`, isRefused };
  }
  const { access_token: token, token_type: type = 'Bearer', expires_in: seconds } = answer ?? {};
  if (typeof token !== 'string' || token === '' || !headerValue.test(token))
    return { kind: 'none', reason: 'answers without an access token', isRefused: false };
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    return { kind: 'none', reason: 'gives a token that is not a bearer token', isRefused: true };
  const lasts = Number(seconds);
  return { kind: 'token', token, lastsMs: (lasts > 0 ? lasts : usualSeconds) * 1000 };
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // not JSON: a page for people
  }
}

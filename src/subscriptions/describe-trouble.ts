import { Refused } from '../outbound/refused.js';

/**
 * Why a callback gave no answer, as its subscriber is told. The error is told of public addresses only, where anybody
 * can find it out: of others it would make of this server a scanner of the ports of its own networks.
 */
export function describeTrouble(error: Error & { code?: unknown }, isPublic: boolean): string {
  if (error instanceof Refused) return `is refused: ${error.message}`;
  if (!isPublic) return 'cannot be reached, or gives no answer over HTTP';
  const { name, message } = error;
  const code = typeof error.code === 'string' ? error.code : '';
  if (isLate(error) || code.includes('TIMEOUT') || code === 'ETIMEDOUT') return 'does not answer in time';
  if (/CERT|TLS|SSL|SELF_SIGNED|EPROTO|UNABLE_TO/.test(code)) return `fails at TLS: ${code}`;
  return `cannot be reached: ${code || message || name}`;
}

/** Node's clients tell a signal's end as an abort, with the reason as its cause. */
const isLate = ({ name, cause }: Error): boolean =>
  name === 'TimeoutError' || (name === 'AbortError' && (cause as Error | undefined)?.name === 'TimeoutError');

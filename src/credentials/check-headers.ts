import type { InvalidParam } from '../infra/http/problem.js';

/** Names that Heraut sends itself, or that speak of the connection. A subscription's own headers may not have them. */
const reserved: ReadonlySet<string> = new Set([
  'accept',
  'authorization',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'idempotency-key',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'user-agent',
]);
const reservedPrefixes = ['webhook-', 'ce-'];

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
// RFC 9110 §5.5. Anything else would be refused when it is sent, or end the header early.
export const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;

type Refused = Pick<InvalidParam, 'code' | 'reason'>;

const invalidName: Refused = { code: 'invalid-header-name', reason: 'Not a name that HTTP allows.' };
const reservedName: Refused = {
  code: 'reserved-header',
  reason: 'Heraut sends this header itself, or it speaks of the connection.',
};
const repeated: Refused = {
  code: 'repeated-header',
  reason: 'Another header has this name: case makes no difference.',
};
const invalidValue: Refused = {
  code: 'invalid-header-value',
  reason: 'Holds a character that HTTP does not allow.',
};

/** Faults of a subscription's own headers, by their names; empty: they can be sent. */
export function checkHeaders(headers: Readonly<Record<string, string>>): InvalidParam[] {
  const seen = new Set<string>();
  return Object.entries(headers).flatMap(([name, value]) => {
    const lower = name.toLowerCase();
    const isAgain = seen.has(lower);
    seen.add(lower);
    const wrong = (refused: Refused) => [{ name: name.slice(0, 100), ...refused }];
    if (!token.test(name)) return wrong(invalidName);
    if (reserved.has(lower) || reservedPrefixes.some((prefix) => lower.startsWith(prefix))) return wrong(reservedName);
    if (isAgain) return wrong(repeated);
    if (!headerValue.test(value)) return wrong(invalidValue);
    return [];
  });
}

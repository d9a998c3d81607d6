import { tlsErrorPattern } from '../infra/tls-errors.js';
import type { DeliveryState } from '../ledger/delivery.js';

/** Why a delivery has not arrived, as far as its last attempt tells; a closed list. */
export const errorClasses = [
  'timeout',
  'connection',
  'tls',
  'refused-address',
  'status-4xx',
  'status-5xx',
  'status-other',
  'expired',
  'credentials',
  'other',
] as const;
export type ErrorClass = (typeof errorClasses)[number];

/**
 * How an error begins that is no answer of the receiver; Postgres reads these patterns as JavaScript does. The first
 * one that fits.
 */
const beginnings: readonly (readonly [ErrorClass, string])[] = [
  ['timeout', '(?:no answer within|ETIMEDOUT|UND_ERR_(?:CONNECT|HEADERS|BODY)_TIMEOUT)'],
  ['refused-address', '(?:ADDRESS_REFUSED|URL_REFUSED|the callback URL is not valid)'],
  [
    'credentials',
    '(?:the token endpoint|the client certificate|it cannot be signed|its credentials cannot be read|\\S+ is encrypted with the key)',
  ],
  ['tls', tlsErrorPattern],
  [
    'connection',
    '(?:ECONN|EHOST|ENET|EPIPE|EADDR|ENOTFOUND|EAI_|UND_ERR_SOCKET|EGRESS_PROXY|UNREACHABLE_BY_PROXY|no |the connection was closed)',
  ],
];
const patterns = beginnings.map(([name, pattern]) => [name, new RegExp(`^${pattern}`)] as const);

/** @returns null: it has arrived, or nothing has failed yet; a dead letter always has one */
export function errorClassOf({
  lastStatus,
  lastError,
  state,
}: {
  lastStatus: number | null;
  lastError: string | null;
  state: DeliveryState;
}): ErrorClass | null {
  if (state === 'delivered') return null;
  if (state === 'expired') return 'expired';
  const unsaid = state === 'failed' || state === 'unknown' ? 'other' : null;
  // An error that is no answer is newer than the status: none came then, or no call was made.
  if (lastStatus !== null && (lastError === null || lastError.startsWith('HTTP '))) {
    if (lastStatus < 200 || lastStatus >= 600) return 'status-other';
    return ([unsaid, 'status-other', 'status-4xx', 'status-5xx'] as const)[Math.floor(lastStatus / 100) - 2]!;
  }
  if (lastError === null) return unsaid;
  return patterns.find(([, pattern]) => pattern.test(lastError))?.[0] ?? 'other';
}

const unsaidInSql = "CASE WHEN state IN ('failed', 'unknown') THEN 'other' END";

/** SQL: the same over the columns of `delivery`; null as there. */
export const errorClassInSql = `CASE
  WHEN state = 'delivered' THEN NULL
  WHEN state = 'expired' THEN 'expired'
  WHEN last_status IS NOT NULL AND (last_error IS NULL OR starts_with(last_error, 'HTTP ')) THEN
    CASE WHEN last_status BETWEEN 200 AND 299 THEN ${unsaidInSql} WHEN last_status BETWEEN 400 AND 499 THEN 'status-4xx'
      WHEN last_status BETWEEN 500 AND 599 THEN 'status-5xx' ELSE 'status-other' END
  WHEN last_error IS NULL THEN ${unsaidInSql}
  ${beginnings.map(([name, pattern]) => `WHEN last_error ~ '^${pattern}' THEN '${name}'`).join('\n  ')}
  ELSE 'other'
END`;

/** SQL: whether a row of `delivery` has that error class. */
export const errorClassCondition = (errorClass: ErrorClass): string => `(${errorClassInSql}) = '${errorClass}'`;

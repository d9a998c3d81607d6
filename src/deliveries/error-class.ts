import type { DeliveryState } from '../ledger/delivery.js';

/** What the last attempt of a delivery failed of, coarsely. */
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

/** The first that fits counts. Of regular expressions, what JavaScript and Postgres read alike. */
const errorPatterns: readonly (readonly [ErrorClass, string])[] = [
  ['refused-address', '^(ADDRESS|URL)_REFUSED'],
  ['tls', 'CERT|TLS|SSL|certificate'],
  ['timeout', 'TIMEOUT|ETIMEDOUT|timed out'],
  ['credentials', '[Tt]oken endpoint|[Cc]redentials|secret'],
  ['connection', '^(E[A-Z]+|UND_ERR_SOCKET|EGRESS_PROXY|UNREACHABLE_BY_PROXY)'],
];

const statusClasses: readonly (readonly [ErrorClass, low: number, high: number])[] = [
  ['status-4xx', 400, 499],
  ['status-5xx', 500, 599],
];

export interface Failure {
  state: DeliveryState;
  lastStatus: number | null;
  lastError: string | null;
}

/** @returns undefined where nothing failed */
export function errorClassOf({ state, lastStatus, lastError }: Failure): ErrorClass | undefined {
  if (state === 'expired') return 'expired';
  if (lastError === null) return undefined;
  if (lastStatus !== null)
    return statusClasses.find(([, low, high]) => lastStatus >= low && lastStatus <= high)?.[0] ?? 'status-other';
  return errorPatterns.find(([, pattern]) => new RegExp(pattern).test(lastError))?.[0] ?? 'other';
}

const classInSql = `CASE WHEN state = 'expired' THEN 'expired' WHEN last_error IS NULL THEN NULL
  ${statusClasses.map(([name, low, high]) => `WHEN last_status BETWEEN ${low} AND ${high} THEN '${name}'`).join(' ')}
  WHEN last_status IS NOT NULL THEN 'status-other'
  ${errorPatterns.map(([name, pattern]) => `WHEN last_error ~ '${pattern}' THEN '${name}'`).join(' ')} ELSE 'other' END`;

/** The same as a condition of SQL, over the columns `state`, `last_status` and `last_error` of `delivery`. */
export const errorClassCondition = (errorClass: ErrorClass): string => `(${classInSql}) = '${errorClass}'`;

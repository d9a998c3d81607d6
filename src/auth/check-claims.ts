/** Why a token is refused; the codes are Open Notificaties', so that clients can go on telling them apart. */
export const tokenRefusals = [
  'jwt-decode-error',
  'missing-client-identifier',
  'invalid-client-identifier',
  'jwt-invalidalgorithmerror',
  'invalid-jwt-signature',
  'jwt-immaturesignatureerror',
  'jwt-expiredsignatureerror',
  'jwt-missing-iat-claim',
  'jwt-invalidissuedaterror',
  'jwt-expired',
] as const;

export type TokenRefusal = (typeof tokenRefusals)[number];

/** Seconds since 1970; undefined: not in the token. */
export interface TimeClaims {
  iat: number | undefined;
  exp: number | undefined;
  nbf: number | undefined;
}

export interface TimeRules {
  /** Seconds after `iat` that a token ends, also when its `exp` is later. */
  expirySeconds: number;
  /** Seconds of clock difference forgiven. */
  leewaySeconds: number;
}

export function readTimeClaims(payload: Record<string, unknown>): TimeClaims | TokenRefusal {
  const [iat, exp, nbf] = [payload.iat, payload.exp, payload.nbf].map(readSeconds);
  if (Number.isNaN(exp) || Number.isNaN(nbf)) return 'jwt-decode-error';
  if (Number.isNaN(iat)) return 'jwt-invalidissuedaterror';
  return { iat, exp, nbf };
}

/**
 * Seconds beyond the leeway that `iat` may lie ahead: clocks drift, and to refuse every token of one that does would
 * break clients.
 */
const furthestAheadSeconds = 60;

/**
 * Compares the times of a token with the clock. In the order of Open Notificaties, because a token may be wrong in two
 * ways.
 */
export function checkTimes({ iat, exp, nbf }: TimeClaims, now: number, rules: TimeRules): TokenRefusal | undefined {
  const { expirySeconds, leewaySeconds } = rules;
  if (nbf !== undefined && nbf > now + leewaySeconds) return 'jwt-immaturesignatureerror';
  if (exp !== undefined && exp <= now - leewaySeconds) return 'jwt-expiredsignatureerror';
  if (iat === undefined) return 'jwt-missing-iat-claim';
  // Open Notificaties accepts any; then a token could be made today that is good in a year.
  if (iat > now + leewaySeconds + furthestAheadSeconds) return 'jwt-immaturesignatureerror';
  if (now - iat >= expirySeconds + leewaySeconds) return 'jwt-expired';
  return undefined;
}

/** Clients send seconds as a whole number, with decimals, or as a text. NaN: as none of these. */
function readSeconds(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d+(\.\d+)?$/.test(value.trim()) ? Number(value) : Number.NaN;
}

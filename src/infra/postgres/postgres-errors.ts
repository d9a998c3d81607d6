/** SQLSTATE of a Postgres error; undefined for anything else (https://www.postgresql.org/docs/current/errcodes-appendix.html). */
export function sqlState(error: unknown): string | undefined {
  const candidate = error as { code?: unknown; driverError?: { code?: unknown } } | undefined;
  const code = candidate?.driverError?.code ?? candidate?.code;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

export const isUniqueViolation = (error: unknown): boolean => sqlState(error) === '23505';

/** A row does not fit any partition. */
export const isMissingPartition = (error: unknown): boolean => sqlState(error) === '23514';

/** The data itself was refused (class 22: data exception, 23: constraint): repeating the same statement cannot help. */
export const isDataError = (error: unknown): boolean => /^2[23]/.test(sqlState(error) ?? '');

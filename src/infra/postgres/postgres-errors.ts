import { isTlsError } from '../tls-errors.js';
import { isMarkedNotConnected } from './not-connected.js';

/**
 * SQLSTATE of a Postgres error; undefined for anything else
 * (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */
export function sqlState(error: unknown): string | undefined {
  const candidate = error as { code?: unknown; driverError?: { code?: unknown } } | undefined;
  const code = candidate?.driverError?.code ?? candidate?.code;
  // With a digit: EPIPE, which the system says, is none.
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

export const isUniqueViolation = (error: unknown): boolean => sqlState(error) === '23505';

/** A row does not fit any partition. */
export const isMissingPartition = (error: unknown): boolean => sqlState(error) === '23514';

/** A statement names a table that is not there: a partition that was dropped. */
export const isMissingTable = (error: unknown): boolean => sqlState(error) === '42P01';

/**
 * The data itself was refused (class 22: data exception, 23: constraint): repeating the same statement cannot help. A
 * missing partition is no fault of the data, although its code is that of a constraint.
 */
export const isDataError = (error: unknown): boolean =>
  /^2[23]/.test(sqlState(error) ?? '') && !isMissingPartition(error);

/**
 * Told by the function of Postgres that says so, which has a longer name in newer versions: the same code is that of a
 * database that writes nothing any more, because its transaction ids are used up.
 */
export function isTooLongForIndex(error: unknown): boolean {
  if (sqlState(error) !== '54000') return false;
  const { driverError, routine } = error as { driverError?: { routine?: unknown }; routine?: unknown };
  return /^(_bt_check_third_page|index_form_tuple)/.test(String(driverError?.routine ?? routine));
}

const connectionCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** Something did not fit on the disk. A row that needs no more room is still written. */
export const isDiskFull = (error: unknown): boolean => sqlState(error) === '53100';

/** A limit of connections is reached, of the server, the role or the database. */
export const hasNoConnectionLeft = (error: unknown): boolean => sqlState(error) === '53300';

/** Of a standby, or where `default_transaction_read_only` is on: all is answered, and nothing is written. */
export const isReadOnly = (error: unknown): boolean => sqlState(error) === '25006';

const withoutTls = 'The server does not support SSL connections';

/**
 * Its certificate is not trusted, or one side does not speak TLS as the other one asks. pg has no code for the second.
 */
export const failsOverTls = (error: unknown): boolean =>
  isTlsError(error) || (error as { message?: unknown } | undefined)?.message === withoutTls;

/**
 * The database cannot be reached or written, lets nobody in, is starting, stopping or full, or was too slow: the same
 * call may succeed later.
 */
export function isUnavailable(error: unknown): boolean {
  // 08: connection exception, 53: insufficient resources, 57: operator intervention (shutdown, starting up, a time
  // limit), 25006: read-only, 25P03: too long idle in a transaction, 25P04: a transaction took too long, 55P03: a lock
  // did not come, 40P01: a deadlock, 28, 3D: not with this user or password, or to this database: whoever changed that
  // may change it back
  const state = sqlState(error);
  if (state) return /^(08|28|3D|53|57|25006|25P0[34]|55P03|40P01)/.test(state);
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if ((typeof code === 'string' && connectionCodes.has(code)) || failsOverTls(error)) return true;
  // pg has no code for these.
  return (
    typeof message === 'string' &&
    /^(Connection terminated|timeout exceeded when trying to connect|Client (has encountered a connection error|was closed)|Query read timeout)/.test(
      message,
    )
  );
}

/**
 * No connection came about, so that nothing was sent over it: refused, not found or not in time, to a server that could
 * not prove who it is, or Postgres said no to it (57P03: it is starting or stopping, 53300: too many connections, 28:
 * not with this user, 3D: no such database).
 */
export function isNotConnected(error: unknown): boolean {
  if (isMarkedNotConnected(error) || /^(57P03|53300|28|3D)/.test(sqlState(error) ?? '')) return true;
  // Of a name with several addresses, the errors of all.
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isNotConnected);
  const { syscall, code, message } = (error ?? {}) as { syscall?: unknown; code?: unknown; message?: unknown };
  // Not the others of TLS: what breaks it may come later.
  if (message === withoutTls || (typeof code === 'string' && /CERT|UNABLE_TO_|HOSTNAME_MISMATCH/.test(code)))
    return true;
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true;
  // pg-pool has no code for these: of waiting for a connection, and of making one.
  return isPoolTimeout(error) || message === 'Connection terminated due to connection timeout';
}

/** All connections of a pool were in use, or being made, for as long as one waits for one. */
export const isPoolTimeout = (error: unknown): boolean =>
  (error as { message?: unknown } | undefined)?.message === 'timeout exceeded when trying to connect';

/** Somebody accepts connections, and ends each before Postgres has said a word: a proxy whose server is away. */
export function isClosedAtOnce(error: unknown): boolean {
  if (!isMarkedNotConnected(error)) return false;
  const { code, message } = error as { code?: unknown; message?: unknown };
  return code === 'ECONNRESET' || code === 'EPIPE' || message === 'Connection terminated unexpectedly';
}

/**
 * Postgres has answered that it did not take place. Not where it says so as it ends the connection, for it may have
 * committed just before: with 08 and 57, of which only 57014 is of a statement that was cancelled, and with a PANIC,
 * whatever its code. Where the disk of its log is full that one is 53100 too, and the record of the commit may have
 * been written.
 */
export function isRefused(error: unknown): boolean {
  const state = sqlState(error);
  if (state === undefined || /^(08|57(?!014))/.test(state)) return false;
  const { driverError, severity } = error as { driverError?: { severity?: unknown }; severity?: unknown };
  return !String(driverError?.severity ?? severity).startsWith('PANI'); // or PANIK: in the language of the server
}

/** Several statements waited for each other's rows, and Postgres cancelled this one. */
export const isDeadlock = (error: unknown): boolean => sqlState(error) === '40P01';

/** Somebody else held a lock for longer than `lock_timeout`. */
export const isLockTimeout = (error: unknown): boolean => sqlState(error) === '55P03';

/** The driver waited for an answer as long as it was allowed to (`query_timeout`; its error has no code). */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof Error && error.message === 'Query read timeout';

/** The time limit that a statement exceeded (see TimeLimits), if any. */
export function exceededLimit(error: unknown): 'statement' | 'lock' | 'answer' | undefined {
  if (isUnanswered(error)) return 'answer';
  switch (sqlState(error)) {
    case '57014': // query_canceled; also when an administrator did it
      return 'statement';
    case '55P03': // lock_not_available
      return 'lock';
    default:
      return undefined;
  }
}

import { CannotConnect } from '../cannot-connect.js';
import { isMarkedNotConnected } from './not-connected.js';
import { pooledByTransaction } from './pooled-by-transaction.js';
import {
  failsOverTls,
  isClosedAtOnce,
  isNotConnected,
  isPoolTimeout,
  isUnavailable,
  sqlState,
} from './postgres-errors.js';

/** After a restore by another user. */
const ownTables =
  'Where another role owns Heraut’s tables: ALTER TABLE … OWNER TO this user, each of them, or GRANT the owner’s role to it.';

/** By SQLSTATE, or by the code of the system. */
const advices: Record<string, string> = {
  ECONNREFUSED: 'Is Postgres running, and is this its host and port? Check DATABASE_URL.',
  ENOTFOUND: 'The name of the host in DATABASE_URL cannot be looked up from here.',
  '25006':
    'It can only be read: it is a standby, or default_transaction_read_only is on. Point DATABASE_URL at the primary, or switch that off.',
  '26000': pooledByTransaction,
  '28P01': 'The password in DATABASE_URL is wrong.',
  '28000':
    'Postgres does not let this user in from here: look at pg_hba.conf. Or it wants TLS, or a certificate of the client: docs/running.md#tls.',
  '3D000': 'The database is not there: CREATE DATABASE … OWNER …, or correct DATABASE_URL.',
  '42P05': pooledByTransaction,
  // Tables on which a user has no rights at all are hidden from it in information_schema, so they seem to be missing.
  '42P07': `It is there already. If it is another program’s, give Heraut a database of its own. ${ownTables}`,
  '42501': `This user may not: GRANT CONNECT ON DATABASE … TO it and GRANT USAGE, CREATE ON SCHEMA … TO it, or make it the owner. ${ownTables}`,
  '53100': 'Its disk is full: make room there, and start again.',
  '53300':
    'Postgres has no connection left: raise max_connections, or the CONNECTION LIMIT of the role or the database where it has one, or lower DATABASE_POOL_SIZE or PROCESSES.',
  '57P03': 'It is starting or stopping: try again in a moment.',
};

const tlsAdvice =
  'Name the file of the authority that has signed its certificate (sslrootcert in DATABASE_URL, or NODE_EXTRA_CA_CERTS), and the host as the certificate does: docs/running.md#tls.';

const closedAdvice =
  'Something accepts connections there and closes them at once. A proxy whose Postgres is away does that: look at both, and at host and port in DATABASE_URL.';

const tooFewAdvice =
  'No connection was free for 5 s. A pooler in front of Postgres has to give as many as all processes of Heraut take (docs/running.md#a-pooler-in-front-of-postgres): raise its limit (default_pool_size of PgBouncer), lower DATABASE_POOL_SIZE or PROCESSES, or point DATABASE_URL at Postgres itself.';

/** Of a pooler, by its message: with the same code it refuses a user that is not in its list, for example. */
const parameterAdvice =
  'A pooler such as PgBouncer refuses what Heraut asks of a connection: point DATABASE_URL at Postgres itself, or have the pooler leave it out (ignore_startup_parameters = statement_timeout,lock_timeout,idle_in_transaction_session_timeout): docs/running.md#a-pooler-in-front-of-postgres.';

export const generalAdvice = 'Check DATABASE_URL, the network and Postgres’ own log.';

/**
 * Advice to an operator, where Postgres was not reached, let nobody in or can only be read; undefined: the error is of
 * another kind.
 */
export function connectionAdvice(error: unknown): string | undefined {
  const { code, syscall, message } = (error ?? {}) as { code?: unknown; syscall?: unknown; message?: unknown };
  const advice = advices[sqlState(error) ?? String(code)];
  if (advice) return advice;
  if (String(message).startsWith('unsupported startup parameter')) return parameterAdvice;
  if (failsOverTls(error)) return tlsAdvice;
  if (isPoolTimeout(error)) return tooFewAdvice;
  if (isClosedAtOnce(error)) return closedAdvice;
  if (code === 'ENOENT' && syscall === 'open')
    return 'A file that DATABASE_URL names (sslrootcert, sslcert or sslkey) is not there.';
  return isNotConnected(error) || isUnavailable(error) ? generalAdvice : undefined;
}

/**
 * An error of the start, for an operator where it is of Postgres and can be mended; any other one as it is. Without a
 * SQLSTATE it may be of another server, unless a pool of connections to Postgres has said so.
 */
export function explainPostgres(error: unknown): unknown {
  const isOfPostgres = sqlState(error) !== undefined || isMarkedNotConnected(error) || isPoolTimeout(error);
  const advice = isOfPostgres ? connectionAdvice(error) : undefined;
  return advice === undefined ? error : new CannotConnect('Postgres', error, advice);
}

/** @throws {CannotConnect} where an operator can do something about it */
export async function orSayWhyNot<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const advice = connectionAdvice(error);
    if (advice === undefined) throw error;
    throw new CannotConnect('Postgres', error, advice);
  }
}

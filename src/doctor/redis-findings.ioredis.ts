import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import type { Settings } from '../config/settings.js';
import { livenessOf, tryLocking, withScripts } from '../idempotency/lock-scripts.redis.js';
import { reasonOf } from '../infra/cannot-connect.js';
import { isTlsError } from '../infra/tls-errors.js';
import { inMegabytes } from './here.js';
import { failed, ok, skipped, warning, type Finding } from './finding.js';

const answerMs = 3000;

export async function examineRedis({ REDIS_URL }: Settings): Promise<Finding[]> {
  if (!REDIS_URL) return [ok('redis', 'not used: locks and seals are kept in Postgres')];
  const redis = new Redis(REDIS_URL, {
    connectionName: 'heraut doctor',
    lazyConnect: true,
    connectTimeout: answerMs,
    commandTimeout: answerMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // `connect` fails with no more than that the connection is closed.
  let said: unknown;
  redis.on('error', (error: unknown) => (said = error));
  try {
    await redis.connect();
    const text = await redis.info();
    const info = new Map([...text.matchAll(/^(\w+):(.*?)\r?$/gm)].map(([, name, value]) => [name!, value!]));
    const findings = examineInfo(info);
    // A server that is of no use says more about itself than its refusal would.
    if (findings[0].verdict === 'ok') {
      if (said) throw said; // a database that was refused: what follows would go to database 0
      findings[0] = await locking(redis, findings[0]);
    }
    return findings;
  } catch (failure) {
    const error = said ?? failure;
    return [failed('redis', reasonOf(error), adviceFor(error)), skipped('redis-memory', 'Redis was not reached')];
  } finally {
    redis.disconnect();
  }
}

function adviceFor(error: unknown): string {
  const { message } = error as Error;
  if (/NOAUTH|WRONGPASS/.test(message)) return 'The user or the password in REDIS_URL is wrong, or missing.';
  if (isNotAllowed.test(message)) return howToAllow;
  if (/max number of clients/.test(message))
    return 'Redis takes no more connections: raise its setting `maxclients`, or close some. Meanwhile deliveries are locked in Postgres.';
  if (/DB index is out of range/.test(message))
    return 'It has no database of the number at the end of REDIS_URL: the setting `databases` of Redis says how many there are. Meanwhile deliveries are locked in Postgres.';
  if (isTlsError(error)) return howToTrust;
  const mayBeTls = wasNotReached.test(reasonOf(error))
    ? ''
    : ', and whether it begins as its port expects, rediss:// with TLS and redis:// without';
  return `Is Redis running, and is this its address? Check REDIS_URL${mayBeTls}. Meanwhile deliveries are locked in Postgres.`;
}

const wasNotReached = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH/;
const howToTrust =
  'TLS fails: NODE_EXTRA_CA_CERTS names the certificate of the authority that signed that of Redis, which has to be for the host in REDIS_URL (docs/running.md, TLS); and rediss:// needs a port for TLS. Meanwhile deliveries are locked in Postgres.';

/** From within a script, Redis 7.0 says it in other words; a command that was renamed is unknown. */
const isNotAllowed = /NOPERM|user executing the script can't|unknown (redis )?command/i;
const howToAllow =
  'Allow the user in REDIS_URL these commands and keys (docs/running.md, Redis). Meanwhile deliveries are locked in Postgres.';

/** As a worker's sign of life does it: an answer to INFO does not say that scripts may be run. */
async function locking(redis: Redis, server: Finding): Promise<Finding> {
  const process = `doctor-${randomUUID()}`;
  try {
    await tryLocking(withScripts(redis), process);
    await redis.del(livenessOf(process));
    return server;
  } catch (error) {
    const { message } = error as Error;
    const advice = isNotAllowed.test(message)
      ? howToAllow
      : 'Redis gives no locks; meanwhile deliveries are locked in Postgres.';
    return failed(server.name, `${server.found}: ${reasonOf(error)}`, advice);
  }
}

/** @param info the answer of INFO, by name */
export function examineInfo(info: ReadonlyMap<string, string>): [server: Finding, memory: Finding] {
  const isSentinel = info.get('redis_mode') === 'sentinel';
  return [server(info), isSentinel ? skipped('redis-memory', 'a Sentinel keeps no locks') : memory(info)];
}

function server(info: ReadonlyMap<string, string>): Finding {
  const version = info.get('redis_version') ?? 'unknown';
  const found = `Redis ${version}`;
  if (info.get('redis_mode') === 'sentinel') {
    return failed(
      'redis',
      `${found}, a Sentinel`,
      'Point REDIS_URL at an address that always leads to the primary: Heraut asks no Sentinel where it is.',
    );
  }
  if (info.get('cluster_enabled') === '1') {
    return failed(
      'redis',
      `${found}, a cluster`,
      'Heraut needs one server, or one with replicas: a script uses keys of several slots.',
    );
  }
  if (info.get('role') === 'slave') {
    return failed('redis', `${found}, a replica`, 'Point REDIS_URL at the primary; a replica refuses writes.');
  }
  if (Number(version.split('.')[0]) < 7) return failed('redis', found, 'Heraut needs Redis 7 or newer.');
  if (info.get('loading') === '1') {
    return warning(
      'redis',
      `${found}, which is loading its data`,
      'Wait; meanwhile deliveries are locked in Postgres.',
    );
  }
  return ok('redis', found);
}

function memory(info: ReadonlyMap<string, string>): Finding {
  const name = 'redis-memory';
  const [used, most] = [Number(info.get('used_memory')), Number(info.get('maxmemory'))];
  const policy = info.get('maxmemory_policy') ?? 'unknown';
  const found = `${inMegabytes(used)} of ${most === 0 ? 'any size' : inMegabytes(most)}, maxmemory-policy ${policy}`;
  if (policy !== 'noeviction') {
    return failed(
      name,
      found,
      'Set maxmemory-policy noeviction: a lock that is evicted is a delivery that a second worker may send.',
    );
  }
  if (most === 0) {
    return warning(name, found, 'Set maxmemory, so that Redis refuses before the system kills it.');
  }
  if (used > most * 0.9) {
    return warning(
      name,
      found,
      'Raise maxmemory, or shorten TTL_IDEMPOTENCY_PER_CUSTOMER_SEC (docs/running.md, Redis).',
    );
  }
  return ok(name, found);
}

import { Logger } from '@nestjs/common';
import { Redis, ReplyError } from 'ioredis';
import type { Duplex } from 'node:stream';
import { RepeatedFailures } from '../logging/repeated-failures.js';

const logger = new Logger('Redis');
const betweenReconnectsMs = 1000;

/** Milliseconds. `silentAfter`: longer than an answer may take. */
const pingTimes = { pingEvery: 1500, silentAfter: 5000 };

/** The driver says so of each command that it cannot write any more, its own among them: not why. */
const isNoReason = (error: Error): boolean => error.message.includes("Stream isn't writeable");

/** Of the number behind REDIS_URL: what follows would go to database 0. */
const isRefusedDatabase = (error: unknown): boolean =>
  error instanceof ReplyError && (error as { command?: { name: string } }).command?.name === 'select';

/**
 * A connection that is re-established for ever. A command fails at once while it is down, rather than wait in a queue
 * of unknown length: the caller decides how to wait.
 */
export function openRedis(url: string, times = pingTimes): Redis {
  const tries = new RepeatedFailures(logger, { failed: { event: 'redis.failed' } });
  /** Why this connection, or this try to make one, fails: the first error of it, as others follow from that. */
  let reason: Error | undefined;
  let reconnectedAt = -Infinity;
  // The server we talk to is a replica now: the master may be elsewhere behind this address. While it is not, a
  // connection for each refused write would fail all that is under way on the one before, reads included.
  const mayReconnect = () => {
    const now = performance.now();
    if (now - reconnectedAt < betweenReconnectsMs) return false;
    reconnectedAt = now;
    return true;
  };
  let isReplica = false;
  const redis = new Redis(url, {
    connectionName: 'heraut',
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 5000,
    commandTimeout: 3000, // a frozen server must not block a worker for ever
    retryStrategy: (times) => Math.min(2000, 50 * 2 ** Math.min(times, 6)),
    reconnectOnError: (error) => {
      if (!error.message.startsWith('READONLY')) return false;
      isReplica = true;
      tries.failed(error);
      return mayReconnect();
    },
  });
  const works = () => {
    isReplica = false;
    tries.worked();
    logger.log({ event: 'redis.connected' });
  };
  let trying: NodeJS.Timeout | undefined;
  redis.on('connecting', () => (reason = undefined));
  // A server that takes no connection (it has no room for one more, or is in protected mode) says so and closes it; the
  // driver takes that for the answer to its first command, of which it reports no error.
  redis.on('connect', () => {
    const { stream } = redis as unknown as { stream: Duplex };
    stream.once('data', (bytes: Buffer) => {
      const [, refusal] = /^-((ERR max number of clients|DENIED)[^\r.]*)/.exec(bytes.toString('latin1')) ?? [];
      if (refusal) reason = new Error(refusal); // any error before it is of a command that could not be written any more
    });
  });
  // Without a listener each failed reconnect would be printed raw.
  redis.on('error', (error: Error) => {
    if (!isNoReason(error)) reason ??= error;
    if (isRefusedDatabase(error)) redis.disconnect(true); // before the driver takes it for ready
  });
  redis.on('close', () => {
    clearInterval(trying);
    if (redis.status !== 'end') tries.failed(reason ?? new Error('the server closed the connection'));
  });
  redis.on('ready', () => {
    clearInterval(trying);
    if (!isReplica) return works();
    // A replica lets everybody in: only a write tells, here of a key that is never there.
    trying = setInterval(() => {
      redis.del('w:').then(
        () => {
          clearInterval(trying);
          if (isReplica) works();
        },
        () => {}, // by `reconnectOnError`, or with the connection
      );
    }, betweenReconnectsMs).unref();
  });
  replaceSilent(redis, times, (error) => (reason ??= error));
  return redis;
}

/**
 * The system gives up a connection beyond which packets vanish after a quarter of an hour. A new one may work now. In
 * every process: one that gives no locks asks Redis as well. And a server that closes idle connections finds none.
 */
function replaceSilent(redis: Redis, { pingEvery, silentAfter }: typeof pingTimes, onSilent: (error: Error) => void) {
  let answeredAt = 0;
  const answered = () => (answeredAt = performance.now());
  redis.on('ready', answered);
  const pinging = setInterval(() => {
    if (redis.status !== 'ready') return;
    redis.ping().then(answered, (error: unknown) => {
      if (error instanceof ReplyError) return answered();
      const silentMs = performance.now() - answeredAt;
      if (silentMs < silentAfter || redis.status !== 'ready') return;
      onSilent(new Error(`no answer for ${Math.round(silentMs / 1000)} s`));
      answered(); // given up once: the driver waits up to 2 s for its end, and further pings fail meanwhile
      redis.disconnect(true);
    });
  }, pingEvery).unref();
  redis.on('end', () => clearInterval(pinging));
}

import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';
import { reasonOf } from '../cannot-connect.js';

const logger = new Logger('Redis');
const betweenReconnectsMs = 1000;

/**
 * A connection that is re-established for ever. A command fails at once while it is down, rather than wait in a queue
 * of unknown length: the caller decides how to wait.
 */
export function openRedis(url: string): Redis {
  let reconnectedAt = -Infinity;
  // The server we talk to is a replica now: the master may be elsewhere behind this address. While it is not, a
  // connection for each refused write would fail all that is under way on the one before, reads included.
  const mayReconnect = () => {
    const now = performance.now();
    if (now - reconnectedAt < betweenReconnectsMs) return false;
    reconnectedAt = now;
    return true;
  };
  let lastReason: string | undefined;
  // One line per distinct trouble is enough.
  const failed = (error: Error) => {
    const reason = reasonOf(error); // an error of several addresses has no message, only a code
    if (reason !== lastReason) logger.warn({ event: 'redis.failed', error });
    lastReason = reason;
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
      failed(error);
      return mayReconnect();
    },
  });
  const works = () => {
    isReplica = false;
    lastReason = undefined;
    logger.log({ event: 'redis.connected' });
  };
  let trying: NodeJS.Timeout | undefined;
  // Without a listener each failed reconnect would be printed raw.
  redis.on('error', failed);
  redis.on('close', () => clearInterval(trying));
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
  return redis;
}

import { Logger } from '@nestjs/common';
import { Redis } from 'ioredis';

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
  const redis = new Redis(url, {
    connectionName: 'heraut',
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 5000,
    commandTimeout: 3000, // a frozen server must not block a worker for ever
    retryStrategy: (times) => Math.min(2000, 50 * 2 ** Math.min(times, 6)),
    reconnectOnError: (error) => error.message.startsWith('READONLY') && mayReconnect(),
  });
  let lastMessage = '';
  // Without a listener each failed reconnect would be printed raw. One line per distinct trouble is enough.
  redis.on('error', (error: Error) => {
    if (error.message !== lastMessage) logger.warn({ event: 'redis.failed', error });
    lastMessage = error.message;
  });
  redis.on('ready', () => {
    lastMessage = '';
    logger.log({ event: 'redis.connected' });
  });
  return redis;
}

import type { Redis } from 'ioredis';
import type { Postgres } from '../infra/postgres/postgres.js';
import type { DeliveryQueue } from '../queue/delivery-queue.js';

export interface Server<Kind> {
  kind: Kind;
  /** Null: it has none, or does not answer. */
  version: string | null;
  isUp: boolean;
}

/** @throws errors of Postgres: without it nothing can be shown */
export async function databaseOf({ dataSource, isEmbedded }: Postgres): Promise<Server<'postgresql' | 'embedded'>> {
  const [row] = await dataSource.query<[{ version: string }]>(`SELECT current_setting('server_version') AS version`);
  return { kind: isEmbedded ? 'embedded' : 'postgresql', version: row.version, isUp: true };
}

export const queueOf = ({ process, brokerVersion, trouble }: DeliveryQueue): Server<'rabbitmq' | 'in-memory'> => ({
  kind: process === null ? 'rabbitmq' : 'in-memory',
  version: brokerVersion ?? null,
  isUp: trouble === undefined,
});

/** @param redis null: there is none, and Postgres has the locks */
export async function locksOf(redis: Redis | null): Promise<Server<'redis' | 'database'>> {
  if (!redis) return { kind: 'database', version: null, isUp: true };
  try {
    const version = /^redis_version:(.*?)\r?$/m.exec(await redis.info('server'))?.[1] ?? null;
    return { kind: 'redis', version, isUp: true };
  } catch {
    return { kind: 'redis', version: null, isUp: false }; // `health` says why
  }
}

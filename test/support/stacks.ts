import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQueuePrefix } from './amqp.js';
import { createDatabase, createEmptyDatabase } from './database.js';
import { copyCluster } from './embedded-cluster.js';
import { createRedisDatabase } from './redis.js';
import { testServers } from './test-servers.js';

export interface PreparedStack {
  /** For the process under test. */
  settings: Record<string, string>;
  /** Removes the data of the stack, once no process uses them any more. */
  release(): Promise<void>;
}

export interface Stack {
  name: 'embedded' | 'real';
  /**
   * A fresh one, without data and not shared with any other test.
   * @param hasTables whether it may be migrated already
   */
  prepare(hasTables?: boolean): Promise<PreparedStack>;
}

export const embedded: Stack = {
  name: 'embedded',
  async prepare(hasTables = true) {
    const directory = await mkdtemp(join(tmpdir(), 'heraut-data-'));
    await copyCluster(join(directory, 'pglite'), hasTables);
    return { settings: { DATA_DIR: directory }, release: () => rm(directory, { recursive: true, force: true }) };
  },
};

/** The three servers' URLs, asked for when a stack is prepared. */
export interface ServerUrls {
  databaseUrl(): string;
  amqpUrl(): string;
  redisUrl(): string;
}

export function realOn(servers: ServerUrls): Stack {
  return {
    name: 'real',
    async prepare(hasTables = true) {
      const [database, redis, queues] = [
        await (hasTables ? createDatabase(servers.databaseUrl()) : createEmptyDatabase(servers.databaseUrl())),
        await createRedisDatabase(servers.redisUrl()),
        createQueuePrefix(servers.amqpUrl()),
      ];
      return {
        settings: {
          DATABASE_URL: database.url,
          AMQP_URL: queues.url,
          QUEUE_PREFIX: queues.prefix,
          REDIS_URL: redis.url,
          CALLBACK_NETWORKS: 'any', // the receivers of tests are on this machine
        },
        release: async () => {
          await Promise.all([database.drop(), redis.release(), queues.remove()]);
        },
      };
    },
  };
}

export const real = realOn(testServers);

/** `describe.each(stacks)('… on the $name stack', (stack) => …)`: the promises are the same on both. */
export const stacks: Stack[] = [embedded, real];

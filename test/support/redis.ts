import { Redis } from 'ioredis';
import { testServers } from './test-servers.js';

export interface TestRedis {
  url: string;
  /** Empties it. */
  release(): Promise<void>;
}

/**
 * A logical database of its own, empty. Database 0 holds only the counter that gives every test another one, in
 * whichever process it runs.
 */
export async function createRedisDatabase(serverUrl = testServers.redisUrl()): Promise<TestRedis> {
  const number = await withClient(serverUrl, async (client) => {
    const [, count] = (await client.config('GET', 'databases')) as [string, string];
    return 1 + ((await client.incr('test-databases')) % (Number(count) - 1));
  });
  const url = `${serverUrl}/${number}`;
  const empty = () => withClient(url, async (client) => void (await client.flushdb()));
  await empty();
  return { url, release: empty };
}

async function withClient<T>(url: string, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { maxRetriesPerRequest: 1 });
  try {
    return await work(client);
  } finally {
    client.disconnect();
  }
}

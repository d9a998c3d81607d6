import { connect } from 'amqplib';
import { randomBytes } from 'node:crypto';
import { topology } from '../../src/queue/topology.rabbitmq.js';
import { testServers } from './test-servers.js';

export interface TestQueues {
  url: string;
  /** For `QUEUE_PREFIX`: names of its own. */
  prefix: string;
  /** Removes the queues of this prefix, whether or not they are there. */
  remove(): Promise<void>;
}

export function createQueuePrefix(serverUrl = testServers.amqpUrl()): TestQueues {
  const prefix = `test-${randomBytes(6).toString('hex')}`;
  return { url: serverUrl, prefix, remove: () => removeQueues(serverUrl, prefix) };
}

async function removeQueues(url: string, prefix: string): Promise<void> {
  const connection = await connect(url);
  try {
    const channel = await connection.createChannel();
    for (const { name } of topology(prefix, 1)) await channel.deleteQueue(name);
    await channel.close();
  } finally {
    await connection.close();
  }
}

import type { Channel, Options } from 'amqplib';
import { close } from '../infra/rabbitmq/close.js';
import { lanes, type Lane } from './delivery-queue.js';

export interface QueueDeclaration {
  lane: Lane;
  name: string;
  options: Options.AssertQueue;
}

/**
 * Everything Heraut has in RabbitMQ: three queues, reached through the default exchange by their names. No delay is
 * kept here and nothing is dead-lettered: the ledger knows which deliveries were lost and when the next attempt is due.
 */
export function topology(prefix: string, maxLength: number): QueueDeclaration[] {
  return lanes.map((lane) => ({
    lane,
    name: `${prefix}.${lane}`,
    options: {
      durable: true,
      arguments: {
        'x-queue-type': 'quorum', // replicated, and the fastest kind for confirmed messages
        'x-max-length': maxLength,
        'x-overflow': 'reject-publish', // a full queue refuses; by default it would drop its oldest messages
        'x-delivery-limit': 20, // a chunk that has killed twenty workers is dropped; the ledger still has its deliveries
      },
    },
  }));
}

/** @returns true if a queue was not there and had to be created */
export async function declare(openChannel: () => Promise<Channel>, declarations: QueueDeclaration[]): Promise<boolean> {
  let created = false;
  for (const { name, options } of declarations) {
    const probe = await openChannel();
    probe.on('error', () => {}); // a missing queue closes the channel, which is the answer
    const exists = await probe.checkQueue(name).then(
      () => true,
      (error: { code?: number }) => {
        if (error.code === 404) return false;
        throw error;
      },
    );
    if (exists) {
      await close(probe);
      continue;
    }
    const channel = await openChannel();
    channel.on('error', () => {}); // the call fails with it
    await channel.assertQueue(name, options);
    await close(channel);
    created = true;
  }
  return created;
}

import type { ConfirmChannel } from 'amqplib';

/** No queue has it: what is published under it is confirmed, and goes nowhere. */
const routingKey = 'heraut.nowhere';

/**
 * Publishes a message that goes to no queue, and waits until it is confirmed: neither connecting nor looking for a
 * queue shows whether this user may write, or whether the broker has an alarm. With an alarm it is not confirmed before
 * that is over.
 * @throws the error with which RabbitMQ closed the channel, or the connection was lost
 */
export function tryPublishing(channel: ConfirmChannel): Promise<void> {
  return new Promise((resolve, reject) => {
    channel.once('error', reject); // comes before the callback, which is told only that the channel is closed
    channel.publish('', routingKey, Buffer.from('heraut'), {}, (error: unknown) => {
      if (error) reject(error as Error);
      else resolve();
    });
  });
}

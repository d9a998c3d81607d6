import type { Channel, ChannelModel } from 'amqplib';

/**
 * Closes a connection or a channel. amqplib's own `close` waits for the broker's answer alone, so if the connection goes
 * instead it never settles; whoever waits for it, at a stop or between two looks at a queue, would wait for ever.
 */
export function close(closable: ChannelModel | Channel): Promise<void> {
  return new Promise((resolve) => {
    closable.once('close', () => resolve());
    closable.close().catch(() => resolve()); // it was gone already, and gone is what is wanted
  });
}

import type { Channel, ChannelModel } from 'amqplib';

/**
 * Closes a connection or a channel. amqplib's own `close` waits for the broker's answer alone, so if the connection is lost
 * first it never settles, and its caller would wait for ever.
 */
export function close(closable: ChannelModel | Channel): Promise<void> {
  return new Promise((resolve) => {
    closable.once('close', () => resolve());
    closable.close().catch(() => resolve()); // closed already
  });
}

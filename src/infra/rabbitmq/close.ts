import type { Channel, ChannelModel } from 'amqplib';
import { answered } from './answered.js';

/** While the process stops: part of the time that this may take. */
export const stoppingMs = 1500;

/**
 * Closes a connection or a channel, and never rejects. amqplib's own `close` waits for the broker's answer alone: if
 * the connection is lost first, or the broker hangs, it never settles, and its caller would wait for ever.
 */
export async function close(closable: ChannelModel | Channel, withinMs?: number): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    closable.once('close', () => resolve());
    closable.close().catch(() => resolve()); // closed already
  });
  await answered(closable, closed, withinMs).catch(() => {}); // the connection was cut instead
}

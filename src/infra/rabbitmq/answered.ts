import type { Channel, ChannelModel } from 'amqplib';

/** A broker answers a call in milliseconds; in the middle of an election of a queue's leader it may take a second. */
const longestCallMs = 3000;

class NoAnswer extends Error {}

/**
 * Waits for calls to the broker, but not for ever: amqplib has no time limit of its own. A broker that does not answer
 * in time is hung, so the connection is cut; whatever else waits for it fails too, and the connection is made anew.
 * @throws when it does not answer, or refuses
 */
export async function answered<T>(on: Channel | ChannelModel, calls: Promise<T>, withinMs = longestCallMs): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new NoAnswer(`RabbitMQ did not answer within ${withinMs} ms.`);
      cut(on, error);
      reject(error);
    }, withinMs);
  });
  try {
    return await Promise.race([calls, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Ends the connection without a word to the broker: `error` and `close` are emitted, and nothing stays open. */
export function cut({ connection }: Channel | ChannelModel, reason: Error): void {
  // amqplib keeps its socket to itself in its types alone.
  (connection as unknown as { stream: { destroy: (error: Error) => void } }).stream.destroy(reason);
}

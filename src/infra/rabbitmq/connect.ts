import amqp, { type ChannelModel } from 'amqplib';

const connectMs = 5000;

/** It let the user in, and not into the virtual host. The broker says why, but amqplib drops what it said: its own log has it. */
export class VirtualHostRefused extends Error {
  constructor(cause: unknown) {
    super('The virtual host is not there, or this user may not use it, or no more connections are allowed to it.', {
      cause,
    });
  }
}

/** @param name of the connection, which RabbitMQ lists */
export async function connect(url: string, name: string): Promise<ChannelModel> {
  try {
    // Nagle would hold small frames back for up to 12 ms.
    return await amqp.connect(url, {
      noDelay: true,
      timeout: connectMs,
      clientProperties: { connection_name: name },
    });
  } catch (error) {
    throw (error as Error).message.startsWith('Expected ConnectionOpenOk; got <ConnectionClose')
      ? new VirtualHostRefused(error)
      : error;
  }
}

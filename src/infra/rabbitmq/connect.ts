import amqp, { type ChannelModel } from 'amqplib';
import { readTlsFiles } from './tls-files.js';

const connectMs = 5000;
/**
 * A process that has not been heard of for two or three of these is cut off by the broker, and its chunks go to others.
 * Brokers propose 60 by themselves.
 */
const heartbeatSeconds = 10;

/**
 * It let the user in, and not into the virtual host. The broker says why, but amqplib drops what it said: its own log
 * has it.
 */
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
    return await amqp.connect(withHeartbeat(url), {
      ...credentialsOf(url),
      ...readTlsFiles(url),
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

/** amqplib reads those of a URL as Latin-1, and so takes each character outside ASCII for several others. */
function credentialsOf(url: string) {
  const { username, password } = new URL(url);
  if (username === '' && password === '') return {}; // guest
  return { credentials: amqp.credentials.plain(decodeURIComponent(username), decodeURIComponent(password)) };
}

/**
 * amqplib takes a heartbeat from the URL alone. The broker's counts where it is shorter; one that the operator has
 * written counts in place of ours.
 */
function withHeartbeat(url: string): string {
  const asked = new URL(url);
  if (!asked.searchParams.has('heartbeat')) asked.searchParams.set('heartbeat', String(heartbeatSeconds));
  return asked.href;
}

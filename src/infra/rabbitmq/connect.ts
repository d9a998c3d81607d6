import amqp, { type ChannelModel } from 'amqplib';

const connectMs = 5000;

/** @param name of the connection, which RabbitMQ lists */
export function connect(url: string, name: string): Promise<ChannelModel> {
  // Nagle would hold small frames back for up to 12 ms.
  return amqp.connect(url, { noDelay: true, timeout: connectMs, clientProperties: { connection_name: name } });
}

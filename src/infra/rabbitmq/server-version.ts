import type { ChannelModel } from 'amqplib';

/** As the broker said when the connection was opened. */
export const serverVersionOf = ({ connection }: ChannelModel): string =>
  (connection as unknown as { serverProperties: { version: string } }).serverProperties.version;

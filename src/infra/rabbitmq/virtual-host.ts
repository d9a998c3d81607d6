import { unescape } from 'node:querystring';

/** Of an AMQP_URL, as amqplib reads it. */
export const virtualHostOf = (url: string): string => unescape(new URL(url).pathname.slice(1)) || '/';

/** For RabbitMQ's own tools, whose words go through a shell; without it they look into the virtual host `/`. */
export function virtualHostOption(url: string): string {
  const name = virtualHostOf(url);
  return `-p ${/^[\w./-]+$/.test(name) ? name : `'${name.replaceAll("'", `'\\''`)}'`}`;
}

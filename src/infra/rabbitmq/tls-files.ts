import { readFileSync } from 'node:fs';
import { CannotConnect } from '../cannot-connect.js';

/** Parameters of RabbitMQ's URIs, which amqplib passes over, and the options of a socket that they are. */
const optionsByParameter = { cacertfile: 'ca', certfile: 'cert', keyfile: 'key' } as const;

export const filesAdvice = 'A file that AMQP_URL names (cacertfile, certfile or keyfile) cannot be read.';

/**
 * Read for each connection, so that a certificate that is renewed counts with the next one.
 * @throws the system's error
 */
export function readTlsFiles(url: string): { ca?: Buffer; cert?: Buffer; key?: Buffer } {
  const { searchParams } = new URL(url);
  const files = Object.entries(optionsByParameter).flatMap(([parameter, option]) => {
    const path = searchParams.get(parameter);
    return path === null ? [] : [[option, readFileSync(path)] as const];
  });
  return Object.fromEntries(files);
}

/** For a start: without them RabbitMQ is never reached. @throws {CannotConnect} which names the one that is missing */
export function requireTlsFiles(url: string): void {
  try {
    readTlsFiles(url);
  } catch (error) {
    throw new CannotConnect('RabbitMQ', error, filesAdvice);
  }
}

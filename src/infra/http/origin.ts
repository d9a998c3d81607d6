import type { FastifyRequest } from 'fastify';

const authority = /^[\w.-]+(:\d{1,5})?$|^\[[\da-f:.]+\](:\d{1,5})?$/i;

/**
 * Scheme and host as the caller used them, without a slash at the end: clients follow only URLs that start with the base
 * URL they were configured with. Behind a proxy: the forwarded ones, when TRUST_FORWARDED_HEADERS is set.
 */
export function originOf(request: FastifyRequest): string {
  if (authority.test(request.host)) return `${request.protocol === 'https' ? 'https' : 'http'}://${request.host}`;
  const { localAddress = '127.0.0.1', localPort = 80 } = request.socket;
  return `http://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

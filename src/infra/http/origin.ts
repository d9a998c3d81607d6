import type { FastifyRequest } from 'fastify';
import type { AllowedHosts } from './allowed-hosts.js';

declare module 'fastify' {
  interface FastifyInstance {
    allowedHosts: AllowedHosts;
    /** Setting PATH_PREFIX. */
    pathPrefix: string;
  }
}

const authority = /^[\w.-]+(:\d{1,5})?$|^\[[\da-f:.]+\](:\d{1,5})?$/i;
/** Not so: a port above 65535, `1.2.3.999`, `[:::]`. Code that makes a URL of it would fail. */
const isHost = (text: string): boolean => authority.test(text) && URL.canParse(`http://${text}`);

/**
 * The beginning of the URLs in answers, without a slash at the end: clients follow only those that start with the base
 * URL they were configured with. Scheme and host are those of `originOf`; what a proxy removes of the path is there
 * again.
 */
export const baseUrlOf = (request: FastifyRequest): string => originOf(request) + request.server.pathPrefix;

/**
 * Scheme and host as the caller used them. Behind a proxy: the forwarded ones, when TRUST_FORWARDED_HEADERS is set. A
 * host that is none, or is not in ALLOWED_HOSTS, is not repeated.
 */
export function originOf(request: FastifyRequest): string {
  const { allowedHosts } = request.server;
  const scheme = request.protocol === 'https' ? 'https' : 'http';
  if (isHost(request.host) && allowedHosts.has(request.host)) return `${scheme}://${request.host}`;
  if (allowedHosts.first !== undefined) return `${scheme}://${allowedHosts.first}`;
  const { localAddress = '127.0.0.1', localPort = 80 } = request.socket;
  return `http://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

import type { FastifyRequest } from 'fastify';
import type { AllowedHosts } from './allowed-hosts.js';
import { isFromHere } from './from-here.js';

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

/** This machine's own address. Not `localhost`, which is what a resolver makes of it. */
const ownAddress = /^(127\.0\.0\.1|\[::1\])(:\d{1,5})?$/;

/**
 * Whether a request may name the host that it names: one of ALLOWED_HOSTS, or this machine's own address where it
 * comes from here through no proxy, as from the command line or an SSH tunnel. A page of another name that resolves to
 * this machine (DNS rebinding) has the browser send that name, and cannot change it. A proxy on this machine that adds
 * no header may pass on such a Host of its caller: the URLs in that answer lead to the caller's own machine, and nobody
 * else gets the answer.
 */
export const mayNameHost = (request: FastifyRequest): boolean =>
  request.server.allowedHosts.has(request.host) || (ownAddress.test(request.host) && isFromHere(request));

/**
 * The beginning of the URLs in answers, without a slash at the end: clients follow only those that start with the base
 * URL they were configured with. Scheme and host are those of `originOf`; what a proxy removes of the path is there
 * again.
 */
export const baseUrlOf = (request: FastifyRequest): string => originOf(request) + request.server.pathPrefix;

/**
 * Scheme and host as the caller used them. Behind a proxy: the forwarded ones, when TRUST_FORWARDED_HEADERS is set. A
 * host that is none, or may not be named, is not repeated.
 */
export function originOf(request: FastifyRequest): string {
  const { allowedHosts } = request.server;
  const scheme = request.protocol === 'https' ? 'https' : 'http';
  if (isHost(request.host) && mayNameHost(request)) return `${scheme}://${request.host}`;
  if (allowedHosts.first !== undefined) return `${scheme}://${allowedHosts.first}`;
  const { localAddress = '127.0.0.1', localPort = 80 } = request.socket;
  return `http://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

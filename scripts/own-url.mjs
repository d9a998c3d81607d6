import { isIPv6 } from 'node:net';

/**
 * Where this machine reaches a program that listens on `host`.
 * @param {string | undefined} host
 * @param {number} port
 */
export function urlOf(host, port) {
  if (!host || host === '0.0.0.0' || host === '::') return `http://127.0.0.1:${port}`;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

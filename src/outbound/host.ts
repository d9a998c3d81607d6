import { isIPv6 } from 'node:net';

/** The host of a URL: an IPv6 address stands in brackets there (RFC 3986 §3.2.2), and nowhere else. */
export const withoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, '');

/** `address:port`, as it stands in a URL and after CONNECT. */
export const authorityOf = (address: string, port: string | number): string =>
  isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;

import { withoutBrackets } from '../outbound/host.js';

/** A callback URL, in the parts that a call needs. */
export interface ParsedUrl {
  origin: string;
  protocol: string;
  /** With its port, where that is not the usual one of the protocol. */
  host: string;
  /** An IPv6 address without its brackets. */
  hostname: string;
  /** Empty: the usual one. */
  port: string;
  /** With the query. */
  path: string;
}

/** Undefined: it is not a URL that can be called. */
export function parseUrl(url: string): ParsedUrl | undefined {
  if (!URL.canParse(url)) return undefined;
  const { origin, protocol, host, hostname, port, pathname, search } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:') return undefined;
  return { origin, protocol, host, hostname: withoutBrackets(hostname), port, path: pathname + search };
}

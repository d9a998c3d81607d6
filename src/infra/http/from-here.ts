import type { FastifyRequest } from 'fastify';
import { BlockList, isIPv6 } from 'node:net';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

const isLoopback = (address = ''): boolean => loopback.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');

/**
 * Whether a browser on this machine sent the request: by loopback, and through no proxy, whose callers all seem to be
 * here.
 */
export const isFromHere = ({ headers, raw }: Pick<FastifyRequest, 'headers' | 'raw'>): boolean =>
  isLoopback(raw.socket.remoteAddress) &&
  ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'via'].every((name) => headers[name] === undefined);

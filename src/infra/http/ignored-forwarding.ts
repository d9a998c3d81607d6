import { Logger } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { baseUrlOf } from './origin.js';

/**
 * While TRUST_FORWARDED_HEADERS is off: whether a proxy says that this request came to it by https, so that URLs in the
 * answer begin otherwise than the caller's own. Then that is logged; once is enough, as anyone can send the header.
 */
export function tellOfIgnoredForwarding(request: FastifyRequest): boolean {
  // A proxy behind another one adds its own at the end.
  const proto = request.headers['x-forwarded-proto'];
  if (typeof proto !== 'string' || !proto.endsWith('https')) return false;
  new Logger('Http').warn({
    event: 'forwarded-headers.ignored',
    setting: 'TRUST_FORWARDED_HEADERS',
    address: request.ip,
    urlsBeginWith: baseUrlOf(request),
  });
  return true;
}

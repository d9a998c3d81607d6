import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyRequest } from 'fastify';
import { bearerToken } from './authorization.service.js';
import { RefusalLimit } from './refusal-limit.service.js';
import { Refusal, TokenVerifier } from './token-verifier.service.js';

/** Applications have room for large bodies where strangers have used up theirs. */
export function giveRoomToKnownCallers(app: NestFastifyApplication): void {
  const tokens = app.get(TokenVerifier, { strict: false });
  const limit = app.get(RefusalLimit, { strict: false });
  app.getHttpAdapter().getInstance().bodies.clientOf = (request: FastifyRequest): string | undefined => {
    const token = bearerToken(request);
    if (token === undefined) return undefined;
    const result = tokens.verify(token, request);
    if (!(result instanceof Refusal)) return result.clientId;
    // The answer tells whether a secret was right, as that of a guard does.
    if (result.code === 'invalid-jwt-signature') limit.add(request, result.application, true);
    return undefined;
  };
}

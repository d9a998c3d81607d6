import { Injectable, Logger } from '@nestjs/common';
import jwt from 'jsonwebtoken';
import { LRUCache } from 'lru-cache';
import { Config } from '../config/config.module.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import { ApplicationDirectory } from './application-directory.service.js';
import type { Application } from './application.js';
import { checkTimes, readTimeClaims, type TimeClaims, type TimeRules, type TokenRefusal } from './check-claims.js';

interface VerifiedToken {
  application: Application;
  times: TimeClaims;
}

const isRefusal = (result: TimeClaims | VerifiedToken | TokenRefusal): result is TokenRefusal =>
  typeof result === 'string';

/**
 * Tells which application sent a token, or why the token is refused. Signatures that were right are remembered: checking
 * one costs more than accepting a notification. A remembered signature counts only for the application object it was checked
 * with, and the time claims are checked every time; so a changed secret or a removed application takes effect at once.
 */
@Injectable()
export class TokenVerifier {
  private readonly logger = new Logger(TokenVerifier.name);
  private readonly rules: TimeRules;
  // The size bounds the memory: a token may be as long as the headers of a request.
  private readonly verified = new LRUCache<string, VerifiedToken>({
    max: 10_000,
    maxSize: 16 * 1024 * 1024,
    sizeCalculation: (_, token) => token.length,
  });

  constructor(
    private readonly applications: ApplicationDirectory,
    private readonly heartbeat: Heartbeat,
    { settings }: Config,
  ) {
    this.rules = { expirySeconds: settings.JWT_EXPIRY, leewaySeconds: settings.TIME_LEEWAY };
  }

  verify(token: string): Application | TokenRefusal {
    let known = this.verified.get(token);
    if (!known || this.applications.find(known.application.clientId) !== known.application) {
      const result = this.checkSignature(token);
      if (isRefusal(result)) return result;
      this.verified.set(token, result);
      known = result;
    }
    return checkTimes(known.times, this.heartbeat.ledgerNow() / 1000, this.rules) ?? known.application;
  }

  private checkSignature(token: string): VerifiedToken | TokenRefusal {
    const decoded = decode(token);
    if (!decoded) return 'jwt-decode-error';
    const { header, payload } = decoded;
    if (!('client_id' in payload)) return 'missing-client-identifier';
    const application = typeof payload.client_id === 'string' ? this.applications.find(payload.client_id) : undefined;
    if (!application?.key) return 'invalid-client-identifier';
    if (header.alg !== 'HS256') return 'jwt-invalidalgorithmerror';
    try {
      jwt.verify(token, application.key, { algorithms: ['HS256'], ignoreExpiration: true, ignoreNotBefore: true });
    } catch {
      // Any error of the library means that the token was not signed with the secret.
      return 'invalid-jwt-signature';
    }
    const times = readTimeClaims(payload);
    if (isRefusal(times)) return times;
    if (times.iat !== undefined && times.iat > this.heartbeat.ledgerNow() / 1000) {
      // Accepted, because clocks drift; logged, because this one does.
      this.logger.warn({ event: 'token.issued-in-future', clientId: application.clientId, issuedAt: times.iat });
    }
    return { application, times };
  }
}

function decode(token: string): { header: jwt.JwtHeader; payload: jwt.JwtPayload } | undefined {
  try {
    const decoded = jwt.decode(token, { complete: true });
    return decoded && isObject(decoded.payload) ? { header: decoded.header, payload: decoded.payload } : undefined;
  } catch {
    return undefined; // a part that is not JSON
  }
}

const isObject = (value: unknown): value is jwt.JwtPayload =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

import { Injectable, Logger } from '@nestjs/common';
import jwt from 'jsonwebtoken';
import { LRUCache } from 'lru-cache';
import { Config } from '../config/config.module.js';
import { LogSamples } from '../infra/logging/log-samples.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { ApplicationDirectory } from './application-directory.service.js';
import type { Application } from './application.js';
import { checkTimes, readTimeClaims, type TimeClaims, type TimeRules, type TokenRefusal } from './check-claims.js';
import { RefusalLimit, type Caller } from './refusal-limit.service.js';

interface VerifiedToken {
  application: Application;
  times: TimeClaims;
}

/** Why a token is refused. */
export class Refusal {
  constructor(
    readonly code: TokenRefusal | 'throttled' | 'secret-unreadable',
    /** That the token names; whether it is its own depends on the code. */
    readonly application?: Application,
    /** Only with `throttled`. */
    readonly waitSeconds?: number,
  ) {}
}

/**
 * Tells which application sent a token, or why the token is refused. Signatures that were right are remembered:
 * checking one costs more than accepting a notification. A remembered signature counts only for the application object
 * it was checked with, and the time claims are checked every time; so a changed secret or a removed application takes
 * effect as soon as it is in memory.
 */
@Injectable()
export class TokenVerifier {
  private readonly logger = new Logger(TokenVerifier.name);
  /** A client may make a token for each request. */
  private readonly samples = new LogSamples(60_000, () => performance.now());
  private readonly rules: TimeRules;
  // The size bounds the memory: a token may be as long as the headers of a request.
  private readonly verified = new LRUCache<string, VerifiedToken>({
    max: 10_000,
    maxSize: 16 * 1024 * 1024,
    sizeCalculation: (_, token) => token.length,
  });

  constructor(
    private readonly applications: ApplicationDirectory,
    private readonly ledgerClock: LedgerClock,
    private readonly limit: RefusalLimit,
    { settings }: Config,
  ) {
    this.rules = { expirySeconds: settings.JWT_EXPIRY, leewaySeconds: settings.TIME_LEEWAY };
  }

  verify(token: string, caller: Caller): Application | Refusal {
    let known = this.verified.get(token);
    if (!known || this.applications.find(known.application.clientId) !== known.application) {
      const result = this.checkSignature(token, caller);
      if (result instanceof Refusal) return result;
      this.verified.set(token, result);
      known = result;
    }
    const refused = checkTimes(known.times, this.ledgerClock.now() / 1000, this.rules);
    return refused ? new Refusal(refused, known.application) : known.application;
  }

  private checkSignature(token: string, caller: Caller): VerifiedToken | Refusal {
    const decoded = decode(token);
    // RFC 7515 §4.1.11: a token with extensions that must be understood is refused by those that do not understand
    // them.
    if (!decoded || 'crit' in decoded.header) return new Refusal('jwt-decode-error');
    const { header, payload } = decoded;
    if (!('client_id' in payload)) return new Refusal('missing-client-identifier');
    const application = typeof payload.client_id === 'string' ? this.applications.find(payload.client_id) : undefined;
    if (application?.isUnreadable) return new Refusal('secret-unreadable', application);
    if (!application?.key) return new Refusal('invalid-client-identifier', application);
    const waitSeconds = this.limit.waitAsGuesser(caller, application);
    if (waitSeconds !== undefined) return new Refusal('throttled', application, waitSeconds);
    if (header.alg !== 'HS256') return new Refusal('jwt-invalidalgorithmerror', application);
    try {
      jwt.verify(token, application.key, { algorithms: ['HS256'], ignoreExpiration: true, ignoreNotBefore: true });
    } catch {
      // Any error of the library means that the token was not signed with the secret.
      return new Refusal('invalid-jwt-signature', application);
    }
    const times = readTimeClaims(payload);
    if (typeof times === 'string') return new Refusal(times, application);
    if (times.iat !== undefined && times.iat > this.ledgerClock.now() / 1000)
      this.noteClockAhead(application, times.iat);
    return { application, times };
  }

  /** Its token is accepted within a minute, because clocks drift; it is logged, because this one does. */
  private noteClockAhead({ clientId }: Application, issuedAt: number): void {
    const tokens = this.samples.pick(clientId);
    const line = { event: 'token.issued-in-future', clientId, issuedAt, tokens };
    if (tokens === undefined) this.logger.debug(line);
    else this.logger.warn(line);
  }
}

function decode(token: string): { header: jwt.JwtHeader; payload: jwt.JwtPayload } | undefined {
  try {
    const decoded = jwt.decode(token, { complete: true });
    if (!decoded || !isObject(decoded.header) || !isObject(decoded.payload)) return undefined;
    return { header: decoded.header, payload: decoded.payload };
  } catch {
    return undefined; // a part that is not JSON
  }
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import type { Application } from '../auth/application.js';
import { Authorizations } from '../credentials/authorizations.service.js';
import type { CredentialChanges } from '../credentials/credentials-io.js';
import { changedCredentials, verbatim, type Credentials } from '../credentials/credentials.js';
import type { Unavailable } from '../credentials/unavailable.js';
import { whyKeyUnusable } from '../credentials/usable-key.js';
import { Config } from '../config/config.module.js';
import { CallTime } from '../infra/call-time.js';
import type { CallerTurns } from '../infra/caller-turns.js';
import { UnavailableProblem, ValidationProblem, wholeInput } from '../infra/http/problem.js';
import { userAgent } from '../infra/user-agent.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { connectTo } from '../outbound/connector.js';
import { isTroubleOfMachine } from '../outbound/describe-error.js';
import { ProxyTrouble } from '../outbound/egress-proxy.js';
import { Outbound, type TlsIdentity } from '../outbound/outbound.service.js';
import { AddressRefused } from '../outbound/refused.js';
import { statusOver } from '../outbound/status-over.node-http.js';
import { signatureHeaders } from '../signing/signature-headers.js';
import type { SigningKey } from '../signing/signing-key.js';
import { describeTrouble } from './describe-trouble.js';
import { proofBody } from './proof-body.js';
import { proofTurns } from './proof-turns.js';
import { requireAuth, requireReadable } from './secrets-to-store.js';
import type { SubscriptionInput } from './subscription-changes.js';
import type { Subscription } from './subscription.js';

/** As the calls with notifications: a firewall that lets those through must let this through. */
const ofEach = { 'content-type': 'application/json', accept: '*/*', 'user-agent': userAgent };
const body = Buffer.from(proofBody);

/** A public page for trying out webhooks; it accepts every call, with or without authorization. */
const openHost = 'webhook.site';

export interface ProofRequest {
  callbackUrl: string;
  auth: string;
  credentials: Credentials;
  /** A receiver that knows them refuses a call that is not signed. Not given: it is being registered, and has none. */
  signingKeys?: readonly SigningKey[];
  /** Whether the callback must also prove that it refuses a call without authorization. */
  isUrlNew: boolean;
}

type ProofAnswer = { status: number } | { trouble: string };

/**
 * Proves that a callback answers, and that it refuses calls without authorization, before a notification is sent there.
 */
@Injectable()
export class CallbackProof implements OnModuleDestroy {
  private readonly logger = new Logger('Callback');
  private readonly mustRefuseStrangers: boolean;
  private readonly closing = new AbortController();
  /** Of a turn, and of a call. */
  protected readonly timeouts = { turnMs: 5000, connectMs: 10_000, overallMs: 30_000 };
  private turns: CallerTurns | undefined;

  constructor(
    { settings }: Config,
    private readonly outbound: Outbound,
    private readonly authorizations: Authorizations,
    private readonly ledgerClock: LedgerClock,
  ) {
    this.mustRefuseStrangers = settings.TEST_CALLBACK_AUTH;
  }

  onModuleDestroy(): void {
    this.closing.abort();
  }

  /**
   * @param caller whose turn it takes
   * @throws {ValidationProblem} with the answer or error of the callback
   */
  async proveNew(
    { callbackUrl, auth, credentials }: Pick<SubscriptionInput, 'callbackUrl' | 'auth' | 'credentials'>,
    caller: Pick<Application, 'clientId'>,
  ): Promise<void> {
    await this.proveInTurn({ callbackUrl, ...shownTo(auth, credentials, verbatim), isUrlNew: true }, caller);
  }

  /**
   * A callback that was proved before, with the same authorization, is not called again, unless it answered 410 Gone.
   * @param caller whose turn it takes
   * @returns whether it was called
   * @throws {ValidationProblem} with the answer or error of the callback
   * @throws {ConflictProblem} where it cannot be called as it would be from now on: a secret cannot be decrypted here
   */
  async proveChange(
    subscription: Subscription,
    changes: Partial<SubscriptionInput>,
    caller: Pick<Application, 'clientId'>,
  ): Promise<boolean> {
    const { callbackUrl = subscription.callbackUrl, auth = subscription.auth, credentials } = changes;
    const isUrlNew = callbackUrl !== subscription.callbackUrl;
    if (!isUrlNew && auth === subscription.auth && !credentials && !subscription.disabledAt) return false;
    requireReadable(subscription, changes);
    const isKindKnown = !subscription.unreadableSecrets?.includes('credentials');
    const before = { auth: subscription.auth, kind: isKindKnown ? subscription.credentials.kind : undefined };
    requireAuth(changes, before, 'credentials.authorization.auth');
    const shown = shownTo(auth, credentials, subscription.credentials);
    await this.proveInTurn({ callbackUrl, ...shown, signingKeys: subscription.signingKeys, isUrlNew }, caller);
    return true;
  }

  private async proveInTurn(request: ProofRequest, { clientId }: Pick<Application, 'clientId'>): Promise<void> {
    this.turns ??= proofTurns(this.timeouts.turnMs);
    await this.turns.run(clientId, () => this.prove(request));
  }

  /**
   * @throws {ValidationProblem} with the answer or error of the callback
   * @throws {UnavailableProblem} where it may not be its own
   */
  async prove(request: ProofRequest): Promise<void> {
    const time = new CallTime(this.closing.signal);
    try {
      await this.proveWithin(time, request);
    } finally {
      time.end();
    }
  }

  private async proveWithin(
    time: CallTime,
    { callbackUrl, auth, credentials, signingKeys = [], isUrlNew }: ProofRequest,
  ): Promise<void> {
    const url = new URL(callbackUrl);
    const { tls, headers } = credentials;
    const unusable = tls && whyKeyUnusable(tls);
    if (unusable) throw refused('credentials.tls.key', 'unusable-key', `was not called: ${unusable}`);
    if (isUrlNew && this.mustRefuseStrangers && url.hostname !== openHost) {
      // A stranger knows where the receiver comes from, and has no certificate.
      const answer = await this.post(time, url, {}, tls && { authority: tls.authority });
      const isRefused = 'trouble' in answer ? tls?.certificate !== undefined : isRefusal(answer.status, tls);
      if ('trouble' in answer && !isRefused) throw refused('callbackUrl', 'invalid-callback-url', answer.trouble);
      if ('status' in answer && !isRefused) {
        const reason = `answers ${answer.status} to a call without authorization; it must answer 401 or 403`;
        throw refused('callbackUrl', 'no-auth-on-callback-url', reason);
      }
    }
    const authorized = { auth, credentials };
    const authorization = await this.authorizations.of(authorized);
    // Why, is for the log alone: a token endpoint can be named by anybody, and must not serve to find out what answers
    // where.
    if (typeof authorization !== 'string') {
      requireNotOurs(authorization, time);
      throw refused(wholeInput, 'invalid-callback-url', 'was not called: no token could be had for it');
    }
    const show = (shown: string) =>
      this.post(time, url, { ...headers, ...this.sign(signingKeys), ...(shown && { authorization: shown }) }, tls);
    let answer = await show(authorization);
    if (isUnauthorized(answer) && this.authorizations.refused(authorized, authorization)) {
      // The token was kept for the calls of others, and may have been revoked since: that is not the subscriber's
      // fault.
      const another = await this.authorizations.of(authorized);
      if (typeof another === 'string') answer = await show(another);
      else requireNotOurs(another, time);
    }
    if ('trouble' in answer) throw refused(wholeInput, 'invalid-callback-url', answer.trouble);
    if (answer.status < 200 || answer.status > 209) {
      const reason = `answers ${answer.status} to a call with the authorization given; it must answer 200 to 209`;
      throw refused(wholeInput, 'invalid-callback-url', reason);
    }
  }

  private sign(signingKeys: readonly SigningKey[]): Record<string, string> {
    const id = randomUUID();
    const signed = signatureHeaders(signingKeys, { id, at: this.ledgerClock.now(), body });
    return signed ? { 'webhook-id': id, ...signed } : {};
  }

  private async post(
    time: CallTime,
    url: URL,
    headers: Record<string, string>,
    tls?: TlsIdentity,
  ): Promise<ProofAnswer> {
    const overall = time.within(this.timeouts.overallMs);
    const tried: string[] = [];
    try {
      const connect = this.outbound.connectorFor(tls);
      const socket = await connectTo(connect, url, time.within(this.timeouts.connectMs), tried);
      return { status: await statusOver(socket, url, { headers: { ...headers, ...ofEach }, body, signal: overall }) };
    } catch (thrown) {
      const error = thrown as Error;
      if (this.closing.signal.aborted) throw new UnavailableProblem('This server is stopping.', 1, error);
      if (error instanceof ProxyTrouble)
        throw new UnavailableProblem('The egress proxy of this server fails.', 60, error);
      // Of the callback nothing is known: a refusal would tell its subscriber not to try again.
      if (isTroubleOfMachine(error))
        throw new UnavailableProblem('This server cannot make a connection to the callback now.', 10, error);
      if (time.hasStoodStill) throw stoodStill(error);
      this.log(url, tried, error);
      const isPublic = tried.every((address) => this.outbound.isPublic(address));
      return { trouble: describeTrouble(error, isPublic) };
    }
  }

  /** Details that the subscriber is not told. */
  private log({ origin }: URL, tried: string[], error: Error): void {
    const addresses = error instanceof AddressRefused ? [error.address] : tried;
    this.logger.log({
      event: 'callback.not-proved',
      callback: origin,
      addresses,
      reason: describeTrouble(error, true),
    });
  }
}

/** The authorization that the callback is shown once the changes are made. */
const shownTo = (auth: string, changes: CredentialChanges | undefined, before: Credentials) => ({
  auth: changes?.auth ?? auth,
  credentials: changes ? changedCredentials(before, changes) : before,
});

/** The callback, or the token endpoint, may have given up a call that this process left unfinished for so long. */
const stoodStill = (error?: Error) => new UnavailableProblem('This server stood still during the call.', 1, error);

/**
 * Of the callback nothing is known then, as where it cannot be called itself.
 * @throws {UnavailableProblem} where it is not for the subscriber that no token could be had
 */
function requireNotOurs({ isOurs, againInMs }: Unavailable, { hasStoodStill }: CallTime): void {
  if (hasStoodStill) throw stoodStill();
  if (!isOurs) return;
  const detail = 'This server has no means to ask for the token of this callback now.';
  throw new UnavailableProblem(detail, Math.max(Math.ceil(againInMs / 1000), 1));
}

/** 400, and nginx's own 495 and 496: no certificate was shown. */
const isRefusal = (status: number, tls: TlsIdentity | undefined): boolean =>
  status === 401 || status === 403 || (tls?.certificate !== undefined && [400, 495, 496].includes(status));

const isUnauthorized = (answer: ProofAnswer): boolean => 'status' in answer && answer.status === 401;

const refused = (name: string, code: string, trouble: string) =>
  new ValidationProblem([{ name, code, reason: `The callback ${trouble}.` }]);

import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import { AuditLog } from '../audit/audit-log.js';
import { addressKey } from '../auth/address-key.js';
import { ApplicationDirectory } from '../auth/application-directory.service.js';
import type { Application } from '../auth/application.js';
import { unreadableSecret } from '../auth/authorization.service.js';
import { RefusalLimit } from '../auth/refusal-limit.service.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { CallerTurns } from '../infra/caller-turns.js';
import {
  PermissionProblem,
  ThrottledProblem,
  TooManyRequestsProblem,
  UnavailableProblem,
} from '../infra/http/problem.js';
import { LogSamples } from '../infra/logging/log-samples.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { valuesOf } from '../infra/postgres/statement.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { isFromHere } from '../infra/http/from-here.js';
import type { BegunSignIn, Provider } from './provider.openid-client.js';
import { nameIn, roleIn, type Claims } from './read-claims.js';
import { findTicket, insertTicket, takeTicket } from './session-rows.js';
import { hashOf, isSecretOf, isSignedBy, isToken, newToken, signatureOf } from './session-token.js';
import { idOfClient, idOfSubject, type Session } from './session.js';
import { Sessions } from './sessions.service.js';
import { SignInFailed } from './sign-in-failed.js';
import { pathBackTo } from './way-back.js';

/** From being sent to the provider until coming back. */
const beganForSeconds = 600;
const ticketMs = 300_000;

/** The browser has kept it, so `to` may be anything again. */
const begunSignIn = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  to: z.string().transform(pathBackTo),
});

/** The three ways into the console. */
@Injectable()
export class SignIn implements OnModuleDestroy {
  private readonly logger = new Logger(SignIn.name);
  /** A user with an account at the provider, and without a role, can come again and again. */
  private readonly samples = new LogSamples(60_000, () => performance.now());
  private readonly settings: Settings;
  private provider: Promise<Provider> | undefined;
  /** A browser that comes back may have made all of it up, and is a call to the provider that may take ten seconds. */
  private readonly turns = new CallerTurns({
    atOnce: 16,
    ofOne: 8,
    longestMs: 5000,
    busy: 'Sign-ins of others are finished first.',
  });

  constructor(
    private readonly postgres: Postgres,
    { settings }: Config,
    private readonly ledgerClock: LedgerClock,
    private readonly applications: ApplicationDirectory,
    private readonly catalogue: Catalogue,
    private readonly limit: RefusalLimit,
    private readonly sessions: Sessions,
  ) {
    this.settings = settings;
  }

  async onModuleDestroy(): Promise<void> {
    await (await this.provider)?.close();
  }

  get hasProvider(): boolean {
    return this.settings.OIDC_ISSUER !== undefined;
  }

  /**
   * Sends the browser to the provider.
   * @param to the page to come back to
   * @returns where the provider is
   * @throws {SignInFailed}
   */
  async begin(to: string, asksAgain: boolean, request: FastifyRequest, reply: FastifyReply): Promise<URL> {
    const provider = await this.loadProvider();
    const { url, begun } = await provider.begin(this.redirectUri(request), asksAgain);
    const kept = Buffer.from(JSON.stringify({ ...begun, to })).toString('base64url');
    this.sessions.cookies.set(request, reply, 'sign_in', kept, beganForSeconds);
    return url;
  }

  /**
   * Signs the user in whom the provider has sent back.
   * @param query of the address it was sent to
   * @returns the page to come back to
   * @throws {SignInFailed}
   */
  async finish(query: string, request: FastifyRequest, reply: FastifyReply): Promise<string> {
    const begun = this.hasProvider ? this.readBegun(request) : undefined;
    try {
      // Also where the browser began another sign-in since: only the last one counts, and the cookie of that one stays.
      if (!begun || new URLSearchParams(query).get('state') !== begun.state) throw new SignInFailed('begin-again');
      this.sessions.cookies.remove(request, reply, 'sign_in');
      await this.signInWith(begun, new URL(`${this.redirectUri(request)}?${query}`), request, reply);
      return begun.to;
    } catch (error) {
      if (error instanceof SignInFailed) error.to = begun?.to;
      throw error;
    }
  }

  private async signInWith(
    begun: BegunSignIn,
    callback: URL,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const claims = await this.claimsFor(begun, callback, request);
    const { OIDC_ISSUER, OIDC_ROLE_CLAIM, OIDC_ROLES } = this.settings;
    const [role, name] = [roleIn(claims, OIDC_ROLE_CLAIM, OIDC_ROLES), nameIn(claims)];
    const id = idOfSubject(OIDC_ISSUER!, String(claims.sub));
    if (!role) {
      const refused = this.samples.pick('no-role');
      const has = Object.keys(claims);
      const line = { event: 'sign-in.no-role', user: id, claim: OIDC_ROLE_CLAIM, has, refused };
      if (refused === undefined) this.logger.debug(line);
      else this.logger.warn(line);
      throw new SignInFailed('no-role');
    }
    await this.sessions.begin({ id, name, role, via: 'oidc' }, undefined, request, reply);
  }

  /** @throws {SignInFailed} */
  private async claimsFor(begun: BegunSignIn, callback: URL, request: FastifyRequest): Promise<Claims> {
    const provider = await this.loadProvider();
    const ask = async () => {
      // In its turn: those before it in line may just have used the sign-ins up.
      if (this.limit.waitToSignIn(request) !== undefined) throw new SignInFailed('throttled');
      try {
        return await provider.finish(callback, begun);
      } catch (error) {
        // For whichever reason: a verifier that is none gives another one than a code that is none.
        this.limit.addSignIn(request);
        throw error;
      }
    };
    try {
      return await this.turns.run(addressKey(request.ip), ask);
    } catch (error) {
      const isLate = error instanceof TooManyRequestsProblem || error instanceof UnavailableProblem;
      throw isLate ? new SignInFailed('provider-unavailable', { cause: error }) : error;
    }
  }

  /**
   * Signs in with the client id and secret of a superuser, where there is no provider.
   * @throws {PermissionProblem}
   * @throws {ThrottledProblem}
   * @throws {UnavailableProblem} where the secret cannot be checked here; that is no guess
   */
  async withSecret(clientId: string, secret: string, request: FastifyRequest, reply: FastifyReply): Promise<Session> {
    if (this.hasProvider) throw new PermissionProblem('sign-in-refused', `Sign in by ${this.settings.OIDC_LABEL}.`);
    let application = this.applications.find(clientId);
    if (application) {
      const waitSeconds = this.limit.waitAsGuesser(request, application);
      if (waitSeconds !== undefined) throw new ThrottledProblem(waitSeconds);
    }
    requireReadable(application);
    if (!isRight(application, secret)) {
      const waitSeconds = this.limit.add(request, application, application !== undefined);
      if (waitSeconds !== undefined) throw new ThrottledProblem(waitSeconds);
      // Another process may just have made it, or given it another secret.
      await this.catalogue.refresh();
      application = this.applications.find(clientId);
      requireReadable(application);
      if (!isRight(application, secret)) {
        throw new PermissionProblem('sign-in-refused', 'No superuser has this client id and this secret.');
      }
    }
    const user = { id: idOfClient(clientId), name: clientId, role: 'administrator', via: 'password' } as const;
    return this.sessions.begin(user, application, request, reply);
  }

  /** A ticket by which the holder of a superuser's token signs in, once. */
  async makeTicket({ clientId, key }: Application): Promise<{ ticket: string; expiresAt: Date }> {
    const ticket = newToken();
    const expiresAt = new Date(this.ledgerClock.now() + ticketMs);
    const values = {
      token_hash: hashOf(ticket),
      client_id: clientId,
      signature: signatureOf(ticket, key!),
      expires_at: expiresAt.toISOString(),
    };
    await this.postgres.dataSource.transaction(async (manager) => {
      await manager.query(insertTicket.text, valuesOf(insertTicket, values));
      const after = { expiresAt };
      await AuditLog.note(manager, { action: 'sign-in-ticket.made', subject: 'sign-in-ticket', before: null, after });
    });
    return { ticket, expiresAt };
  }

  /**
   * Signs in with a ticket, at the machine itself.
   * @throws {SignInFailed}
   * @throws {UnavailableProblem} where it cannot be checked here; it stays good
   */
  async withTicket(ticket: unknown, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (!isToken(ticket) || !isFromHere(request)) throw new SignInFailed('ticket-refused');
    if (this.limit.waitWithTicket(request) !== undefined) throw new SignInFailed('throttled');
    const [seen] = await this.postgres.queryAside<{ client_id: string }>(findTicket, { token_hash: hashOf(ticket) });
    if (seen) {
      await this.catalogue.refresh();
      requireReadable(this.applications.find(seen.client_id));
    }
    const now = new Date(this.ledgerClock.now()).toISOString();
    const [[taken]] = await this.postgres.dataSource.query<
      [{ client_id: string; signature: string; is_good: boolean }[], number]
    >(takeTicket.text, valuesOf(takeTicket, { token_hash: hashOf(ticket), now }));
    if (!taken?.is_good) throw this.refuseTicket(request);
    const application = this.applications.find(taken.client_id);
    if (!application?.isSuperuser || !application.key || !isSignedBy(taken.signature, ticket, application.key)) {
      throw this.refuseTicket(request);
    }
    const { clientId } = application;
    const user = { id: idOfClient(clientId), name: clientId, role: 'administrator', via: 'ticket' } as const;
    await this.sessions.begin(user, application, request, reply);
  }

  private refuseTicket(request: FastifyRequest): SignInFailed {
    this.limit.addTicket(request);
    return new SignInFailed('ticket-refused');
  }

  private redirectUri(request: FastifyRequest): string {
    return `${this.sessions.cookies.urlFor(request)}/callback`;
  }

  private readBegun(request: FastifyRequest): (BegunSignIn & { to: string }) | undefined {
    const kept = this.sessions.cookies.read(request, 'sign_in') ?? '';
    try {
      return begunSignIn.parse(JSON.parse(Buffer.from(kept, 'base64url').toString('utf8')));
    } catch {
      return undefined; // none, or not one of ours
    }
  }

  /** Loaded for the first user: most processes never need it. */
  private loadProvider(): Promise<Provider> {
    this.provider ??= import('./provider.openid-client.js').then(
      ({ Provider: Loaded }) => new Loaded(this.settings, this.ledgerClock),
    );
    return this.provider;
  }
}

const isRight = (application: Application | undefined, secret: string): application is Application =>
  application?.isSuperuser === true && application.key !== undefined && isSecretOf(secret, application.key);

/** @throws {UnavailableProblem} where nothing that was made with the secret of this superuser can be checked here */
function requireReadable(application: Application | undefined): void {
  if (application?.isSuperuser && application.isUnreadable) throw unreadableSecret();
}

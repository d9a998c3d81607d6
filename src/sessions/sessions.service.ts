import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EntityManager } from 'typeorm';
import { AuditLog } from '../audit/audit-log.js';
import { actingFor } from '../audit/author.js';
import type { Fields } from '../audit/differing.js';
import { addressKey } from '../auth/address-key.js';
import { ApplicationDirectory } from '../auth/application-directory.service.js';
import type { Application } from '../auth/application.js';
import { authorOf } from '../auth/author.interceptor.js';
import { lookedUp } from '../auth/authorization.guard.js';
import { bearerToken, unreadableSecret } from '../auth/authorization.service.js';
import { RefusalLimit } from '../auth/refusal-limit.service.js';
import { UserSessions, type SessionUser } from '../auth/user-sessions.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { CallerTurns } from '../infra/caller-turns.js';
import { NotSignedInProblem, ThrottledProblem } from '../infra/http/problem.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { valuesOf, type Statement, type Values } from '../infra/postgres/statement.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { ConsoleCookies } from './console-cookies.js';
import { KnownSessions } from './known-sessions.js';
import { isOfConsole, isUse, requireOwnPage } from './own-page.js';
import {
  endOfAll,
  endOfUser,
  endSession,
  endTogether,
  findSession,
  insertSession,
  sessionOf,
  type SessionRow,
} from './session-rows.js';
import { hashOf, isSignedBy, isToken, newToken, signatureOf } from './session-token.js';
import { idOfClient, type Session } from './session.js';
import { SessionWatch } from './session-watch.service.js';

/** A session that is used every second is written once in so long. */
const longestBetweenWritesMs = 60_000;

/** The sessions of the console: rows of the ledger, which every process remembers for seconds (docs/decisions/0050). */
@Injectable()
export class Sessions extends UserSessions {
  readonly cookies: ConsoleCookies;
  private readonly known: KnownSessions;
  private readonly looks = new Map<string, Promise<Session | undefined>>();
  /** All cookies of an address that come together would be looked up otherwise, before the first of them is counted. */
  private readonly turns = new CallerTurns({
    atOnce: 16,
    ofOne: 8,
    longestMs: 5000,
    busy: 'Sessions of others are looked up first.',
  });
  private readonly idleMs: number;
  private readonly longestMs: number;
  private readonly issuer: string | undefined;

  constructor(
    private readonly postgres: Postgres,
    { settings }: Config,
    private readonly ledgerClock: LedgerClock,
    private readonly applications: ApplicationDirectory,
    private readonly catalogue: Catalogue,
    private readonly limit: RefusalLimit,
    private readonly watching: SessionWatch,
  ) {
    super();
    this.known = new KnownSessions(ledgerClock);
    this.cookies = new ConsoleCookies(settings);
    [this.idleMs, this.longestMs] = [settings.SESSION_IDLE_SEC * 1000, settings.SESSION_MAX_SEC * 1000];
    this.issuer = settings.OIDC_ISSUER;
  }

  concerns(request: FastifyRequest): boolean {
    // Of another scheme it is for a proxy in front, to which the browser sends it with everything.
    if (bearerToken(request) !== undefined) return false;
    return isOfConsole(request) || this.cookies.readToken(request) !== undefined;
  }

  async userOf(request: FastifyRequest): Promise<Session> {
    requireOwnPage(request, this.cookies);
    return this.find(request);
  }

  async userWhoChanges(request: FastifyRequest): Promise<Session> {
    // Not before the session is known: whoever guesses one costs no look at the catalogue.
    await this.userOf(request);
    await lookedUp(this.catalogue.refresh());
    return this.userOf(request);
  }

  /**
   * The session that the request belongs to.
   * @throws {NotSignedInProblem} when there is none, or no longer
   * @throws {UnavailableProblem} where the secret that it was begun with cannot be decrypted here
   * @throws {ThrottledProblem} where it is not known here, and too many of this address had none in this minute
   * @throws as `CallerTurns.run`, where it is not known here
   */
  async find(request: FastifyRequest): Promise<Session> {
    const token = this.cookies.readToken(request);
    if (!isToken(token)) throw new NotSignedInProblem();
    const hash = hashOf(token);
    if (this.known.isOver(hash)) throw new NotSignedInProblem();
    const known = this.known.fresh(hash);
    const isUsed = isUse(request);
    const isToBeNoted = isUsed && known !== undefined && this.isUseDue(known.session);
    if (known && !isToBeNoted && this.isAsChecked(known.session, known.application)) return known.session;
    const wasKnown = this.known.has(hash);
    if (!wasKnown) this.requireLook(request);
    const session = await this.look(hash, isUsed, wasKnown ? undefined : request);
    if (session && (await this.check(session, token, hash))) return session;
    if (session && this.applicationOf(session)?.isUnreadable) throw unreadableSecret();
    if (!session) this.known.end(hash);
    // One that has just ended is no guess.
    throw wasKnown ? new NotSignedInProblem() : this.countRefused(request);
  }

  /**
   * Begins a session in the browser that sent the request, in place of the one that it has.
   * @param application whose secret the user has shown
   */
  async begin(
    user: SessionUser,
    application: Application | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Session> {
    const [token, before, now] = [newToken(), this.cookies.readToken(request), this.ledgerClock.now()];
    const expiresAt = now + this.longestMs;
    const signature = application?.key ? signatureOf(token, application.key) : null;
    const session: Session = { ...user, signature, expiresAt, endsAt: Math.min(now + this.idleMs, expiresAt) };
    const values = {
      token_hash: hashOf(token),
      user_id: session.id,
      name: session.name,
      role: session.role,
      via: session.via,
      signature,
      now: asTime(now),
      ends_at: asTime(session.endsAt),
      expires_at: asTime(expiresAt),
    };
    await this.change(request, session, 'session.began', null, { role: session.role }, async (manager) => {
      if (isToken(before)) await run(manager, endSession, { token_hash: hashOf(before) });
      await run(manager, insertSession, values);
    });
    if (isToken(before)) this.forget(hashOf(before));
    this.known.keep(values.token_hash, session, application);
    this.cookies.setToken(request, reply, token, user.via);
    return session;
  }

  /** Ends the session of the browser that sent the request. */
  async end(session: Session, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const hash = hashOf(this.cookies.readToken(request)!);
    await this.change(request, session, 'session.ended', { role: session.role }, null, (manager) =>
      run(manager, endSession, { token_hash: hash }),
    );
    this.forget(hash);
    this.cookies.removeToken(request, reply);
  }

  /** Ends every session of the user, or of everybody. */
  async endAll(session: Session, ofEverybody: boolean, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const [statement, values] = ofEverybody ? [endOfAll, {}] : [endOfUser, { user_id: session.id }];
    const action = ofEverybody ? 'session.all-ended' : 'session.ended-everywhere';
    await this.change(request, session, action, {}, {}, async (manager) => {
      while ((await run(manager, statement, values)) === endTogether);
    });
    this.known.endAll(ofEverybody ? undefined : session.id);
    await this.watching.look();
    this.cookies.removeToken(request, reply);
  }

  watch(request: FastifyRequest, ended: () => void): () => void {
    const token = bearerToken(request) === undefined ? this.cookies.readToken(request) : undefined;
    if (!isToken(token)) return () => {};
    return this.watching.add(hashOf(token), (session) => this.isGood(session, token), ended);
  }

  private forget(hash: string): void {
    this.known.end(hash);
    this.watching.end(hash);
  }

  /**
   * One look at a time for one token, and one that notes a use: a page asks for many things at once, some of them by
   * itself.
   * @param stranger the request, where this process does not know the session: it waits for its turn
   */
  private look(hash: string, isUsed: boolean, stranger: FastifyRequest | undefined): Promise<Session | undefined> {
    const key = `${stranger ? 'unknown' : 'known'} ${isUsed ? 'used' : 'seen'} ${hash}`;
    let look = this.looks.get(key);
    if (!look) {
      const found = stranger ? this.readInTurn(hash, isUsed, stranger) : this.read(hash, isUsed);
      look = found.finally(() => this.looks.delete(key));
      this.looks.set(key, look);
    }
    return look;
  }

  /** Counts a look in vain before the turn is over, so that the next in line is not looked up beyond the limit. */
  private readInTurn(hash: string, isUsed: boolean, request: FastifyRequest): Promise<Session> {
    return this.turns.run(addressKey(request.ip), async () => {
      this.requireLook(request);
      const session = await this.read(hash, isUsed);
      if (session) return session;
      this.known.end(hash);
      throw this.countRefused(request);
    });
  }

  /** @throws {ThrottledProblem} where the cookies of this address are not looked up any more in this minute */
  private requireLook(request: FastifyRequest): void {
    const waitSeconds = this.limit.waitWithCookie(request);
    if (waitSeconds !== undefined) throw new ThrottledProblem(waitSeconds);
  }

  private countRefused(request: FastifyRequest): NotSignedInProblem | ThrottledProblem {
    const waitSeconds = this.limit.addCookie(request);
    return waitSeconds === undefined ? new NotSignedInProblem() : new ThrottledProblem(waitSeconds);
  }

  /** Whether a use at this moment is to be written. */
  private isUseDue({ endsAt, expiresAt }: Session): boolean {
    return endsAt < Math.min(expiresAt, this.renewBefore(this.ledgerClock.now()));
  }

  private renewBefore(now: number): number {
    return now + this.idleMs - Math.min(longestBetweenWritesMs, this.idleMs / 10);
  }

  private async read(hash: string, isUsed: boolean): Promise<Session | undefined> {
    const now = this.ledgerClock.now();
    const values = {
      token_hash: hash,
      now: asTime(now),
      ends_at: asTime(now + this.idleMs),
      renew_before: asTime(isUsed ? this.renewBefore(now) : 0),
    };
    const [row] = await this.postgres.queryAside<SessionRow>(findSession, values);
    return row && sessionOf(row);
  }

  /** Whether what the user signed in with is still good; another process may just have changed the application. */
  private async check(session: Session, token: string, hash: string): Promise<boolean> {
    if (this.keepIfGood(session, token, hash)) return true;
    if (session.signature === null) return false;
    await this.catalogue.refresh();
    return this.keepIfGood(session, token, hash);
  }

  private keepIfGood(session: Session, token: string, hash: string): boolean {
    const isGood = this.isGood(session, token);
    if (isGood) this.known.keep(hash, session, this.applicationOf(session));
    return isGood;
  }

  private isGood(session: Session, token: string): boolean {
    if (!session.signature) return this.issuer !== undefined && session.id.startsWith(`oidc:${this.issuer}#`);
    const key = this.applicationOf(session)?.key;
    return key !== undefined && isSignedBy(session.signature, token, key);
  }

  /** Changed applications are other objects. */
  private isAsChecked(session: Session, application: Application | undefined): boolean {
    return this.applicationOf(session) === application;
  }

  /**
   * The application whose secret the user has shown, if it still counts: passwords do not where there is a provider.
   */
  private applicationOf({ id, via }: Session): Application | undefined {
    if (via === 'oidc' || (via === 'password' && this.issuer !== undefined)) return undefined;
    const application = this.applications.find(id.slice(idOfClient('').length));
    return application?.isSuperuser ? application : undefined;
  }

  /** A change of sessions, noted in the audit log as the user's own. */
  private async change(
    request: FastifyRequest,
    { id, name, via }: Session,
    action: string,
    before: Fields,
    after: Fields,
    work: (manager: EntityManager) => Promise<unknown>,
  ): Promise<void> {
    const change = { action, subject: `user/${id}`, before, after };
    await actingFor(authorOf(request, { client: name, via }), () =>
      this.postgres.entityTransaction(async (manager) => {
        await work(manager);
        await AuditLog.note(manager, change);
      }),
    );
  }
}

const asTime = (ms: number): string => new Date(ms).toISOString();

/** @returns how many rows it deleted */
async function run(manager: EntityManager, statement: Statement, values: Values): Promise<number> {
  const answer = await manager.query<[unknown[], number] | unknown[]>(statement.text, valuesOf(statement, values));
  return typeof answer[1] === 'number' ? answer[1] : 0;
}

import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { EntityManager } from 'typeorm';
import { AuditLog } from '../audit/audit-log.js';
import { actingFor } from '../audit/author.js';
import type { Fields } from '../audit/differing.js';
import { ApplicationDirectory } from '../auth/application-directory.service.js';
import type { Application } from '../auth/application.js';
import { authorOf } from '../auth/author.interceptor.js';
import { RefusalLimit } from '../auth/refusal-limit.service.js';
import { UserSessions, type SessionUser } from '../auth/user-sessions.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { Config } from '../config/config.module.js';
import { NotSignedInProblem, ThrottledProblem } from '../infra/http/problem.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { valuesOf, type Statement, type Values } from '../infra/postgres/statement.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
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
  private readonly known = new KnownSessions(() => this.heartbeat.ledgerNow());
  private readonly looks = new Map<string, Promise<Session | undefined>>();
  private readonly idleMs: number;
  private readonly longestMs: number;
  private readonly issuer: string | undefined;

  constructor(
    private readonly postgres: Postgres,
    { settings }: Config,
    private readonly heartbeat: Heartbeat,
    private readonly applications: ApplicationDirectory,
    private readonly catalogue: Catalogue,
    private readonly limit: RefusalLimit,
    private readonly watching: SessionWatch,
  ) {
    super();
    this.cookies = new ConsoleCookies(settings);
    [this.idleMs, this.longestMs] = [settings.SESSION_IDLE_SEC * 1000, settings.SESSION_MAX_SEC * 1000];
    this.issuer = settings.OIDC_ISSUER;
  }

  concerns(request: FastifyRequest): boolean {
    if (request.headers.authorization !== undefined) return false;
    return isOfConsole(request) || this.cookies.read(request, 'session') !== undefined;
  }

  async userOf(request: FastifyRequest): Promise<Session> {
    requireOwnPage(request, this.cookies);
    return this.find(request);
  }

  /**
   * The session that the request belongs to.
   * @throws {NotSignedInProblem} when there is none, or no longer
   * @throws {ThrottledProblem} where it is not known here, and too many of this address were refused in this minute
   */
  async find(request: FastifyRequest): Promise<Session> {
    const token = this.cookies.read(request, 'session');
    if (!isToken(token)) throw new NotSignedInProblem();
    const hash = hashOf(token);
    if (this.known.isOver(hash)) throw new NotSignedInProblem();
    const known = this.known.fresh(hash);
    if (known && this.isAsChecked(known.session, known.application)) return known.session;
    const wasKnown = this.known.has(hash);
    const waitSeconds = wasKnown ? undefined : this.limit.waitAsStranger(request);
    if (waitSeconds !== undefined) throw new ThrottledProblem(waitSeconds);
    const session = await this.look(hash, isUse(request));
    if (session && (await this.check(session, token, hash))) return session;
    if (!session) this.known.end(hash);
    // One that has just ended is no guess.
    const nowWait = wasKnown ? undefined : this.limit.add(request, undefined, false);
    throw nowWait === undefined ? new NotSignedInProblem() : new ThrottledProblem(nowWait);
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
    const [token, before, now] = [newToken(), this.cookies.read(request, 'session'), this.heartbeat.ledgerNow()];
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
    this.cookies.set(request, reply, 'session', token);
    return session;
  }

  /** Ends the session of the browser that sent the request. */
  async end(session: Session, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const hash = hashOf(this.cookies.read(request, 'session')!);
    await this.change(request, session, 'session.ended', { role: session.role }, null, (manager) =>
      run(manager, endSession, { token_hash: hash }),
    );
    this.forget(hash);
    this.cookies.remove(request, reply, 'session');
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
    this.cookies.remove(request, reply, 'session');
  }

  watch(request: FastifyRequest, ended: () => void): () => void {
    const token = request.headers.authorization === undefined ? this.cookies.read(request, 'session') : undefined;
    return isToken(token) ? this.watching.add(hashOf(token), ended) : () => {};
  }

  private forget(hash: string): void {
    this.known.end(hash);
    this.watching.end(hash);
  }

  /** One look at a time for one token: a page asks for many things at once. */
  private look(hash: string, isUsed: boolean): Promise<Session | undefined> {
    let look = this.looks.get(hash);
    if (!look) {
      look = this.read(hash, isUsed).finally(() => this.looks.delete(hash));
      this.looks.set(hash, look);
    }
    return look;
  }

  private async read(hash: string, isUsed: boolean): Promise<Session | undefined> {
    const now = this.heartbeat.ledgerNow();
    const betweenWrites = Math.min(longestBetweenWritesMs, this.idleMs / 10);
    const values = {
      token_hash: hash,
      now: asTime(now),
      ends_at: asTime(now + this.idleMs),
      renew_before: asTime(isUsed ? now + this.idleMs - betweenWrites : 0),
    };
    // Beside the connections that accept and deliver.
    const [row] = await this.postgres.dataSource.query<SessionRow[]>(findSession.text, valuesOf(findSession, values));
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
    const application = this.applicationOf(session);
    const isGood = session.signature
      ? application?.key !== undefined && isSignedBy(session.signature, token, application.key)
      : this.issuer !== undefined && session.id.startsWith(`oidc:${this.issuer}#`);
    if (isGood) this.known.keep(hash, session, application);
    return isGood;
  }

  /** Changed applications are other objects. */
  private isAsChecked(session: Session, application: Application | undefined): boolean {
    return this.applicationOf(session) === application;
  }

  /** Whose secret the user has shown, if it still counts: passwords do not where there is a provider. */
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
      this.postgres.dataSource.transaction(async (manager) => {
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

import { Body, Controller, Delete, Get, HttpCode, Post, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import { hasRole } from '../auth/user-roles.js';
import { Config } from '../config/config.module.js';
import { checkInput } from '../infra/http/check-input.js';
import { readJsonBody } from '../infra/http/json-body.pipe.js';
import { NotSignedInProblem, PermissionProblem } from '../infra/http/problem.js';
import { version } from '../infra/version.js';
import { requireOwnPage } from './own-page.js';
import type { Session } from './session.js';
import { Sessions } from './sessions.service.js';
import { SignIn } from './sign-in.service.js';

const secretInput = z.strictObject({ clientId: z.string().min(1).max(255), secret: z.string().min(1).max(255) });
const endAllInput = z.strictObject({ of: z.enum(['me', 'everybody']).default('me') });

interface Shown {
  user: Pick<Session, 'name' | 'role' | 'via'>;
  /** ISO 8601: when it ends, unless it is used before. */
  expiresAt: string;
  version: string;
}

/**
 * The session of a browser, for the console's own pages: who I am, and how to sign in and out. Not by the guard of the
 * admin API, which also admits tokens: each change demands by itself that it comes from a page of the console, and
 * notes itself in the audit log.
 */
@ApiExcludeController()
@Controller('console/session')
export class SessionController {
  constructor(
    private readonly sessions: Sessions,
    private readonly signIn: SignIn,
    private readonly config: Config,
  ) {}

  @Get()
  async read(@Req() request: FastifyRequest, @Res({ passthrough: true }) reply: FastifyReply): Promise<Shown | Buffer> {
    void reply.header('cache-control', 'no-store');
    try {
      return toShow(await this.sessions.find(request));
    } catch (error) {
      if (!(error instanceof NotSignedInProblem)) throw error;
      return this.showWaysIn(error, reply);
    }
  }

  @Post()
  @HttpCode(200)
  async begin(
    @Body() body: unknown,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Shown> {
    requireOwnPage(request, this.sessions.cookies);
    const { clientId, secret } = checkInput(secretInput, body);
    return toShow(await this.signIn.withSecret(clientId, secret, request, reply));
  }

  @Delete()
  @HttpCode(204)
  async end(@Req() request: FastifyRequest, @Res({ passthrough: true }) reply: FastifyReply): Promise<void> {
    await this.sessions.end(await this.sessions.userOf(request), request, reply);
  }

  @Post('end-all')
  @HttpCode(204)
  async endAll(@Req() request: FastifyRequest, @Res({ passthrough: true }) reply: FastifyReply): Promise<void> {
    const session = await this.sessions.userWhoChanges(request);
    // Most have nothing to say.
    const body = request.body === undefined ? {} : readJsonBody(request.body);
    const ofEverybody = checkInput(endAllInput, body).of === 'everybody';
    if (ofEverybody && !hasRole(session.role, 'administrator')) {
      throw new PermissionProblem('role-too-low', 'Only an administrator ends the sessions of everybody.');
    }
    await this.sessions.endAll(session, ofEverybody, request, reply);
  }

  /** No error of anybody: it is how a page that has just been opened finds out what to show. */
  private showWaysIn({ status, code, detail, extra }: NotSignedInProblem, reply: FastifyReply): Buffer {
    const { OIDC_LABEL } = this.config.settings;
    const oidc = this.signIn.hasProvider;
    void reply.status(status).headers(extra.headers!).header('content-type', 'application/problem+json');
    return Buffer.from(
      JSON.stringify({ code, status, detail, signIn: { oidc, label: oidc ? OIDC_LABEL : null, password: !oidc } }),
    );
  }
}

const toShow = ({ name, role, via, endsAt }: Session): Shown => ({
  user: { name, role, via },
  expiresAt: new Date(endsAt).toISOString(),
  version,
});

import { Controller, Get, Logger, Query, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ThrottledProblem } from '../infra/http/problem.js';
import { LogSamples } from '../infra/logging/log-samples.js';
import { toProblem } from '../infra/http/to-problem.js';
import { SignInFailed } from './sign-in-failed.js';
import { SignIn } from './sign-in.service.js';
import { pathBackTo } from './way-back.js';

type Texts = Record<string, string | string[] | undefined>;

/**
 * Addresses that a browser is led to. They lead on to a page of the console, in every case: the page `sign-in` says
 * what went wrong. Addresses are relative, because a proxy may have a path in front.
 */
@ApiExcludeController()
@Controller('console')
export class SignInController {
  private readonly logger = new Logger('SignIn');
  /**
   * Anyone can fail to sign in, as often as they like: of each reason the first in a minute is logged, the others at
   * debug.
   */
  private readonly samples = new LogSamples(60_000, () => performance.now());

  constructor(private readonly signIn: SignIn) {}

  @Get('begin')
  async begin(@Query() query: Texts, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const to = pathBackTo(textOf(query.to));
    await this.leadOn(request, reply, to, async () => {
      if (!this.signIn.hasProvider) return './sign-in';
      return String(await this.signIn.begin(to, query.again !== undefined, request, reply));
    });
  }

  @Get('callback')
  async finish(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    const query = request.url.split('?').slice(1).join('?');
    await this.leadOn(request, reply, './', () => this.signIn.finish(query, request, reply));
  }

  @Get('enter')
  async enter(@Query() query: Texts, @Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await this.leadOn(request, reply, './', async () => {
      await this.signIn.withTicket(query.ticket, request, reply);
      return pathBackTo(textOf(query.to));
    });
  }

  /** @param to where the user wants to be in the end @param work says where that is now */
  private async leadOn(
    request: FastifyRequest,
    reply: FastifyReply,
    to: string,
    work: () => Promise<string>,
  ): Promise<void> {
    void reply.header('cache-control', 'no-store');
    try {
      await reply.redirect(await work(), 303);
    } catch (error) {
      const reason = reasonOf(error);
      if (reason === undefined) throw error;
      // `refused`: how many failed for this reason since the line before.
      const refused = this.samples.pick(reason);
      const cause = (error as Error).cause ?? undefined;
      const line = { event: 'sign-in.failed', reason, address: request.ip, refused, error: cause };
      if (refused === undefined) this.logger.debug(line);
      else this.logger.warn(line);
      const back = (error instanceof SignInFailed ? error.to : undefined) ?? to;
      const query = new URLSearchParams({ error: reason, ...(back === './' ? {} : { to: back.slice(2) }) });
      await reply.redirect(`./sign-in?${query.toString()}`, 303);
    }
  }
}

function reasonOf(error: unknown): SignInFailed['reason'] | undefined {
  if (error instanceof SignInFailed) return error.reason;
  if (error instanceof ThrottledProblem) return 'throttled';
  return toProblem(error).status === 503 ? 'unavailable' : undefined;
}

const textOf = (value: string | string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined;

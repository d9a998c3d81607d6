import { Injectable, Logger } from '@nestjs/common';
import { Agent, request } from 'undici';
import type { Application } from '../auth/application.js';
import { Config } from '../config/config.module.js';
import { CallTime } from '../infra/call-time.js';
import { CallerTurns } from '../infra/caller-turns.js';
import { ProblemError, UnavailableProblem, ValidationProblem } from '../infra/http/problem.js';
import { userAgent } from '../infra/user-agent.js';
import { describeError, isTroubleOfMachine } from '../outbound/describe-error.js';
import { ProxyTrouble } from '../outbound/egress-proxy.js';
import { Outbound } from '../outbound/outbound.service.js';
import { Refused } from '../outbound/refused.js';

interface Trouble {
  /** To the publisher. No more than needed: it may be looking for open ports in the networks of this server. */
  told: string;
  /** For the log, where that is more. */
  reason?: string;
  /** This server, or its egress proxy, failed, or stood still: of the documentation nothing is known. */
  isOurs?: boolean;
}

/** A channel that only gets a warning does not wait long for one. */
const shortTurnMs = 500;

/**
 * Fetches a channel's documentation (setting DOCUMENTATION_LINK_CHECK). Off by default: it makes this server call any
 * URL a publisher names, and documentation is often deployed after the program that registers the channel.
 */
@Injectable()
export class DocumentationLinkCheck {
  private readonly logger = new Logger(DocumentationLinkCheck.name);
  private readonly mode: 'off' | 'warn' | 'enforce';
  protected readonly timeoutMs: number = 10_000;
  protected readonly turnMs: number = 5000;
  private turns: CallerTurns | undefined;

  constructor(
    { settings }: Config,
    private readonly outbound: Outbound,
  ) {
    this.mode = settings.DOCUMENTATION_LINK_CHECK;
  }

  /**
   * @param field its name in the caller's API
   * @param caller whose turn it takes
   * @throws {ValidationProblem} code `bad-url` when it must be refused
   * @throws {TooManyRequestsProblem} when too many of the caller's are fetched already
   * @throws {UnavailableProblem} when it cannot be found out now
   */
  async check(
    link: string,
    field: 'documentatieLink' | 'documentationLink',
    { clientId }: Pick<Application, 'clientId'>,
  ): Promise<void> {
    if (this.mode === 'off' || link === '') return;
    const trouble = await this.fetchInTurn(link, clientId);
    if (!trouble) return;
    const { told, reason = told, isOurs = false } = trouble;
    this.logger.warn({ event: 'channel.documentation-unreachable', link, trouble: reason });
    if (this.mode === 'warn') return;
    if (isOurs) throw new UnavailableProblem('This server cannot fetch the documentation now.', 10);
    throw new ValidationProblem([{ name: field, code: 'bad-url', reason: `The documentation ${told}.` }]);
  }

  /** In turns like those of callbacks: servers that say nothing would keep as many connections as somebody asks for. */
  private async fetchInTurn(link: string, caller: string): Promise<Trouble | undefined> {
    this.turns ??= new CallerTurns({
      atOnce: 64,
      ofOne: 8,
      longestMs: this.mode === 'enforce' ? this.turnMs : shortTurnMs,
      busy: 'The documentation of others is fetched first. Repeat this later.',
    });
    try {
      return await this.turns.run(caller, () => this.fetch(link));
    } catch (error) {
      // A warning keeps no channel away.
      if (this.mode === 'enforce' || !(error instanceof ProblemError)) throw error;
      return { told: 'was not fetched', reason: 'was not fetched, because too much else was at that moment' };
    }
  }

  private async fetch(link: string): Promise<Trouble | undefined> {
    const agent = new Agent({ connect: this.outbound.connectorFor({}, this.timeoutMs) });
    const time = new CallTime();
    try {
      const headers = { accept: '*/*', 'user-agent': userAgent };
      const response = await request(link, { dispatcher: agent, headers, signal: time.within(this.timeoutMs) });
      return response.statusCode === 200 ? undefined : { told: `answered ${response.statusCode}, not 200` };
    } catch (error) {
      if (error instanceof Refused) return { told: `is refused: ${error.message}` };
      const isOurs = error instanceof ProxyTrouble || isTroubleOfMachine(error as Error) || time.hasStoodStill;
      return { told: 'cannot be fetched', reason: describeError(error as Error), isOurs };
    } finally {
      time.end();
      // The body is not read; destroying the connection ends it.
      await agent.destroy();
    }
  }
}

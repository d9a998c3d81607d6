import { Body, Controller, Get, Header, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type * as z from 'zod';
import { Tally } from '../activity/tally.js';
import type { Application } from '../auth/application.js';
import { CurrentApplication } from '../auth/auth.decorators.js';
import { Authorization } from '../auth/authorization.service.js';
import { scopes } from '../auth/scopes.js';
import { TokenWatch } from '../auth/token-watch.service.js';
import { checkInput } from '../infra/http/check-input.js';
import { KnownQuery } from '../infra/http/known-query.pipe.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { endFetched } from '../ledger/end-fetched.js';
import { apiPath } from '../nrc/nrc-dialect.js';
import { NrcOperation } from '../nrc/nrc-operation.js';
import { beyondTheStandard, uuidPath } from '../nrc/resource.js';
import { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import { acknowledgedOutput, acknowledgementInput, pageToSend, pullOutput, pullQuery } from './pull-io.js';
import { Fetches } from './fetches.service.js';
import { PullService } from './pull.service.js';

const mayFetch = [scopes.consume];

/** For a subscriber that fetches what was accepted for it, beside or instead of what is sent to its callback. */
@Controller(`${apiPath}/abonnement/:uuid/notificaties`)
export class PullController {
  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly fetches: Fetches,
    private readonly pulling: PullService,
    private readonly postgres: Postgres,
    private readonly authorization: Authorization,
    private readonly tokens: TokenWatch,
    private readonly tally: Tally,
  ) {}

  @Get()
  @Header('cache-control', 'no-store')
  @NrcOperation({
    id: 'fetching_list',
    tag: 'abonnement',
    summary: 'Fetch the notificaties of an abonnement',
    description: `${beyondTheStandard} All that were accepted for it and are still kept, sent or not, in order. Go on with the \`cursor\` of the answer. Behind it come only the text of one that was scheduled, one that was scheduled and is replaced by one for this abonnement, and what an operator replays that was not for it before: read those again with \`from\`. Only \`acknowledge\` says that you have them: while it is paused, what nobody acknowledges is kept for ever. Of those of the last eleven seconds (with the default DATABASE_TIMEOUT) 64 are given; the others come when that time is over. It changes nothing in what is sent to the callback.`,
    scopes: mayFetch,
    path: uuidPath,
    query: pullQuery,
    status: 200,
    answer: pullOutput,
    problems: [400, 404],
    problemTexts: {
      429: 'Four requests to fetch for this abonnement are not answered yet, or too many of this application or of all, or this request did not get its turn within five seconds, or answers to others have not been read (`too-many-fetches`); or too many requests were refused (`throttled`). Repeat it after Retry-After.',
    },
  })
  async fetch(
    @Param('uuid', ResourceId) uuid: string,
    @Query(new KnownQuery(...Object.keys(pullQuery.shape))) query: Record<string, string>,
    @CurrentApplication() application: Application,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Buffer> {
    const { cursor, from, limit = 100, wait = 0 } = checkInput(pullQuery, query);
    const over = new AbortController();
    reply.raw.once('close', () => over.abort());
    const wish = { limit, waitMs: wait * 1000, left: over.signal };
    const fetcher = { subscriptionId: uuid, clientId: application.clientId };
    const page = await this.fetches.during(fetcher, async () => {
      await this.subscriptions.getOwn(uuid, application);
      const unwatch = this.tokens.add(request, application, mayFetch, () => over.abort());
      try {
        return await this.pulling.fetch(fetcher, cursor ?? this.pulling.startAt(from ?? 0), wish);
      } finally {
        unwatch();
      }
    });
    this.requireStill(request, application, uuid);
    const answer = Buffer.from(pageToSend(page));
    this.fetches.lend(application.clientId, answer, reply.raw);
    void reply.header('content-type', 'application/json; charset=utf-8');
    return answer;
  }

  /**
   * The request may have waited: its answer needs the right to fetch that the application has now, as far as this
   * process knows.
   * @throws as a request that came now
   */
  private requireStill(request: FastifyRequest, application: Application, uuid: string): void {
    const now = this.authorization.identifyNow(request, application, mayFetch);
    if ('problem' in now) throw now.problem;
    this.subscriptions.findOwn(uuid, now);
  }

  @Post('acknowledge')
  @NrcOperation({
    id: 'fetching_acknowledge',
    tag: 'abonnement',
    summary: 'Say which notificaties need not be sent any more',
    description: `${beyondTheStandard} Their deliveries end as delivered, also those that had failed; a call that is being made is not taken back.`,
    scopes: [scopes.consume],
    path: uuidPath,
    body: acknowledgementInput,
    status: 200,
    answer: acknowledgedOutput,
    problems: [404],
  })
  async acknowledge(
    @Param('uuid', ResourceId) uuid: string,
    @Body() body: unknown,
    @CurrentApplication() application: Application,
  ): Promise<z.output<typeof acknowledgedOutput>> {
    const { ids } = checkInput(acknowledgementInput, body);
    const { id: subscriptionId } = await this.subscriptions.getOwn(uuid, application);
    const deliveries = [...new Set(ids)].map((notificationId) => ({ notificationId, subscriptionId }));
    const ended = await endFetched(this.postgres, deliveries, (count) => this.tally.fetched(subscriptionId, count));
    return { ended: ended.map(({ notificationId }) => notificationId) };
  }
}

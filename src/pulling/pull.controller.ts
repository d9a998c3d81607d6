import { Body, Controller, Get, Header, Param, Post, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type * as z from 'zod';
import type { Application } from '../auth/application.js';
import { CurrentApplication } from '../auth/auth.decorators.js';
import { scopes } from '../auth/scopes.js';
import { checkInput } from '../infra/http/check-input.js';
import { KnownQuery } from '../infra/http/known-query.pipe.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { endFetched } from '../ledger/end-fetched.js';
import { lowestIdAt } from '../ledger/partitions.js';
import { apiPath } from '../nrc/nrc-dialect.js';
import { NrcOperation } from '../nrc/nrc-operation.js';
import { uuidPath } from '../nrc/resource.js';
import { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import { acknowledgedOutput, acknowledgementInput, pageToSend, pullOutput, pullQuery } from './pull-io.js';
import { Fetches } from './fetches.service.js';
import { PullService } from './pull.service.js';

const beyondTheStandard = 'Beyond the standard. Only for the creator of the abonnement.';

/** For a subscriber that fetches what was accepted for it, beside or instead of what is sent to its callback. */
@Controller(`${apiPath}/abonnement/:uuid/notificaties`)
export class PullController {
  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly fetches: Fetches,
    private readonly pulling: PullService,
    private readonly postgres: Postgres,
  ) {}

  @Get()
  @Header('cache-control', 'no-store')
  @NrcOperation({
    id: 'fetching_list',
    tag: 'abonnement',
    summary: 'Fetch the notificaties of an abonnement',
    description: `${beyondTheStandard} All that were accepted for it and are still kept, sent or not, in order. Go on with the \`cursor\` of the answer: that acknowledges what came before, and none is skipped. Of those of the last eleven seconds (with the default DATABASE_TIMEOUT) 64 are given; the others come when that time is over. It changes nothing in what is sent to the callback.`,
    scopes: [scopes.consume],
    path: uuidPath,
    query: pullQuery,
    status: 200,
    answer: pullOutput,
    problems: [400, 404],
    problemTexts: {
      429: 'Four requests to fetch for this abonnement are not answered yet, or too many of this application or of all, or this request did not get its turn within five seconds (`too-many-fetches`); or too many requests were refused (`throttled`). Repeat it after Retry-After.',
    },
  })
  async fetch(
    @Param('uuid', ResourceId) uuid: string,
    @Query(new KnownQuery(...Object.keys(pullQuery.shape))) query: Record<string, string>,
    @CurrentApplication() application: Application,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<string> {
    const { cursor, from = lowestIdAt(0), limit = 100, wait = 0 } = checkInput(pullQuery, query);
    const gone = new AbortController();
    reply.raw.once('close', () => gone.abort());
    const wish = { limit, waitMs: wait * 1000, left: gone.signal };
    const fetcher = { subscriptionId: uuid, clientId: application.clientId };
    const page = await this.fetches.during(fetcher, async () => {
      await this.subscriptions.getOwn(uuid, application);
      return this.pulling.fetch(fetcher, cursor ?? { after: from, seen: [] }, wish);
    });
    void reply.header('content-type', 'application/json; charset=utf-8');
    return pageToSend(page);
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
    const ended = await endFetched(this.postgres, deliveries);
    return { ended: ended.map(({ notificationId }) => notificationId) };
  }
}

import { Get, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type * as z from 'zod';
import type { Application } from '../auth/application.js';
import { AdminController, CurrentApplication } from '../auth/auth.decorators.js';
import { KeptAnswers } from '../catalogue/kept-answers.service.js';
import { checkInput } from '../infra/http/check-input.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { SubscriptionAnswers } from '../subscriptions/subscription-answers.service.js';
import { SubscriptionDirectory, type ListedSubscription } from '../subscriptions/subscription-directory.service.js';
import { subscriptionListOutput } from '../subscriptions/subscriptions-io.js';
import { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import { OpenEndpoints } from './open-endpoints.service.js';
import { endpointsOf } from './origin.js';
import { pageOfSubscriptions, subscriptionListQuery } from './subscription-list.js';

/** The subscriptions of the catalogue, also by the endpoint that they lead to. */
@AdminController('subscriptions', 'subscriptions')
export class SubscriptionListController {
  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly directory: SubscriptionDirectory,
    private readonly openEndpoints: OpenEndpoints,
    private readonly answers: SubscriptionAnswers,
    private readonly kept: KeptAnswers,
  ) {}

  @Get()
  @AdminOperation({
    id: 'subscription_list',
    summary: 'The subscriptions, the oldest first.',
    query: subscriptionListQuery,
    status: 200,
    answer: subscriptionListOutput,
  })
  async list(
    @Query() query: Record<string, string>,
    @CurrentApplication() application: Application,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.output<typeof subscriptionListOutput> | Buffer> {
    const asked = checkInput(subscriptionListQuery, query);
    const isOfParked = asked.state === 'parked';
    if (isOfParked) await this.openEndpoints.refresh();
    const open = this.openEndpoints.all;
    const isParked = (subscription: ListedSubscription) =>
      open.size > 0 && endpointsOf(subscription).some((address) => open.has(address));
    // Of these there are few, and the console asks for the names of several selections at once.
    if (asked.limit !== undefined || asked.ids) {
      const { subscriptions, ...page } = pageOfSubscriptions(await this.subscriptions.list(), isParked, asked);
      return { ...page, subscriptions: subscriptions.map((subscription) => this.answers.show(subscription)) };
    }
    // Which endpoints are open is not of the catalogue, by whose edition a list is kept; others may be when it is made.
    const key = `subscriptions ${JSON.stringify([asked, ...(isOfParked ? open.keys() : [])])}`;
    return this.kept.answer(key, application.id, reply, () => {
      const { subscriptions, count, nextCursor } = pageOfSubscriptions(this.directory.list(), isParked, asked);
      return {
        before: `{"count":${count},"nextCursor":${JSON.stringify(nextCursor)},"subscriptions":[`,
        items: subscriptions,
        present: (subscription) => this.answers.show(subscription),
        after: ']}',
      };
    });
  }
}

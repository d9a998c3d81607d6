import { Headers, Param, Post, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { AdminController } from '../auth/auth.decorators.js';
import { NeedsUserRole } from '../auth/user-roles.js';
import { readBack } from '../infra/http/read-back.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { SubscriptionAnswers, type Shown, type ShownWithHeld } from './subscription-answers.service.js';
import { changesSubscription, unknownSubscription } from './subscription-operation.js';
import { subscriptionOutput, subscriptionWithHeldOutput } from './subscriptions-io.js';
import { SubscriptionsService } from './subscriptions.service.js';

/**
 * Whether deliveries of a subscription are sent, and what becomes of those that are held: for an operator, without an
 * administrator.
 */
@AdminController('subscriptions', 'subscriptions/:subscriptionId')
export class SubscriptionStateController {
  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly answers: SubscriptionAnswers,
  ) {}

  @Post('enable')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'subscription_enable',
    summary: 'Sends to a receiver again that answered 410 Gone.',
    description:
      'Counts for notifications accepted from now on. Its callback is not tried first. Failed deliveries can be retried.',
    ...changesSubscription,
    status: 200,
    answer: subscriptionOutput,
    problems: unknownSubscription,
  })
  async enable(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Shown> {
    return this.answers.tagged(await this.subscriptions.enable(subscriptionId, { ifMatch }), reply);
  }

  @Post('pause')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'subscription_pause',
    summary: 'Holds its deliveries, those of new notifications too.',
    description:
      'Calls that are open go on. One that is paused already stays as it is. Deliveries can become too old meanwhile, or be cancelled.',
    ...changesSubscription,
    status: 200,
    answer: subscriptionOutput,
    problems: unknownSubscription,
  })
  async pause(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Shown> {
    return this.answers.tagged(await this.subscriptions.pause(subscriptionId, { ifMatch }), reply);
  }

  @Post('resume')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'subscription_resume',
    summary: 'Sends what is held for it, the oldest first, at the pace of its endpoint.',
    description: 'One that is not paused stays as it is.',
    ...changesSubscription,
    status: 200,
    answer: subscriptionOutput,
    problems: { ...unknownSubscription, 409: '`subscription-dropping`: what it held is still being dropped.' },
  })
  async resume(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Shown> {
    return this.answers.tagged(await this.subscriptions.resume(subscriptionId, { ifMatch }), reply);
  }

  @Post('drop-held')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'subscription_drop_held',
    summary: 'Cancels what is held for a paused subscription at this moment.',
    description:
      'Within seconds, longer where a million is held: `held.isDropping` says whether it goes on. Notifications accepted later are held as before.',
    status: 202,
    answer: subscriptionWithHeldOutput,
    ...changesSubscription,
    problems: { ...unknownSubscription, 409: '`subscription-not-paused`: pause it first.' },
  })
  async dropHeld(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ShownWithHeld> {
    const dropping = await this.subscriptions.dropHeld(subscriptionId, { ifMatch });
    return readBack(() => this.answers.taggedWithHeld(dropping, reply));
  }
}

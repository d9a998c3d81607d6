import { Body, Controller, Get, Logger, Param, Patch, Post } from '@nestjs/common';
import { ApiBearerAuth, ApiTags } from '@nestjs/swagger';
import type { z } from 'zod';
import { RequireSuperuser } from '../auth/auth.decorators.js';
import { Config } from '../config/config.module.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { checkInput } from '../infra/http/check-input.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { guaranteeOf } from './delivery-guarantee.js';
import type { Subscription } from './subscription.js';
import {
  subscriptionChangesInput,
  subscriptionToShow,
  subscriptionListOutput,
  subscriptionOutput,
} from './subscriptions-io.js';
import { SubscriptionsService } from './subscriptions.service.js';

type Shown = z.output<typeof subscriptionOutput>;

const unknownSubscription = { 404: 'There is no such subscription.' };

/** The operator's view and settings of subscriptions. Subscribers register and change callbacks, in the Notificaties API. */
@ApiTags('subscriptions')
@ApiBearerAuth()
@RequireSuperuser()
@Controller('admin/v1/subscriptions')
export class SubscriptionsController {
  private readonly logger = new Logger(SubscriptionsController.name);
  private readonly atLeastOnceCustomers: ReadonlySet<string>;

  constructor(
    private readonly subscriptions: SubscriptionsService,
    { settings }: Config,
  ) {
    this.atLeastOnceCustomers = new Set(settings.AT_LEAST_ONCE_SENDING_CUSTOMERS);
  }

  @Get()
  @AdminOperation({
    id: 'subscription_list',
    summary: 'Every subscription, the oldest first.',
    status: 200,
    answer: subscriptionListOutput,
  })
  async list(): Promise<z.output<typeof subscriptionListOutput>> {
    return { subscriptions: (await this.subscriptions.list()).map((subscription) => this.show(subscription)) };
  }

  @Get(':subscriptionId')
  @AdminOperation({
    id: 'subscription_read',
    summary: 'One subscription.',
    status: 200,
    answer: subscriptionOutput,
    problems: unknownSubscription,
  })
  async read(@Param('subscriptionId', ResourceId) subscriptionId: string): Promise<Shown> {
    return this.show(await this.subscriptions.get(subscriptionId));
  }

  @Patch(':subscriptionId')
  @AdminOperation({
    id: 'subscription_change',
    summary: 'Says how often its deliveries may be sent.',
    description: 'Counts for every delivery that is sent from now on. A disabled subscription stays disabled.',
    body: subscriptionChangesInput,
    status: 200,
    answer: subscriptionOutput,
    problems: unknownSubscription,
  })
  async change(@Param('subscriptionId', ResourceId) subscriptionId: string, @Body() body: unknown): Promise<Shown> {
    const { deliveryGuarantee } = checkInput(subscriptionChangesInput, body);
    const subscription = await this.subscriptions.get(subscriptionId);
    if (deliveryGuarantee === undefined) return this.show(subscription);
    return this.show(await this.subscriptions.setGuarantee(subscriptionId, deliveryGuarantee));
  }

  @Post(':subscriptionId/enable')
  @AdminOperation({
    id: 'subscription_enable',
    summary: 'Sends to a receiver again that answered 410 Gone.',
    description:
      'Counts for notifications accepted from now on. Its callback is not tried first. Failed deliveries can be retried.',
    status: 200,
    answer: subscriptionOutput,
    problems: unknownSubscription,
  })
  async enable(@Param('subscriptionId', ResourceId) subscriptionId: string): Promise<Shown> {
    const subscription = await this.subscriptions.get(subscriptionId);
    if (!subscription.disabledAt) return this.show(subscription);
    this.logger.log({ event: 'subscription.enabled', subscriptionId });
    return this.show(await this.subscriptions.enable(subscriptionId));
  }

  private show(subscription: Subscription): Shown {
    return subscriptionToShow(subscription, guaranteeOf(subscription, this.atLeastOnceCustomers));
  }
}

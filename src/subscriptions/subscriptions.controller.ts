import { Body, Controller, Get, Param, Patch, Post } from '@nestjs/common';
import { ApiBearerAuth, ApiTags } from '@nestjs/swagger';
import type { z } from 'zod';
import { NeedsUserRole, RequireSuperuser } from '../auth/auth.decorators.js';
import { Config } from '../config/config.module.js';
import { credentialChangesInput, readCredentialChanges } from '../credentials/credentials-io.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { checkInput } from '../infra/http/check-input.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { readHeld } from '../ledger/read-held.js';
import { checkTimeout } from './call-timeout.js';
import { guaranteeOf } from './delivery-guarantee.js';
import type { Subscription } from './subscription.js';
import {
  heldToShow,
  mostHeldCounted,
  subscriptionChangesInput,
  subscriptionListOutput,
  subscriptionOutput,
  subscriptionToShow,
  subscriptionWithHeldOutput,
} from './subscriptions-io.js';
import { SubscriptionsService } from './subscriptions.service.js';

type Shown = z.output<typeof subscriptionOutput>;
type ShownWithHeld = z.output<typeof subscriptionWithHeldOutput>;

const unknownSubscription = { 404: 'There is no such subscription.' };

/** The operator's view and settings of subscriptions. Subscribers register and change callbacks, in the Notificaties API. */
@ApiTags('subscriptions')
@ApiBearerAuth()
@RequireSuperuser()
@Controller('admin/v1/subscriptions')
export class SubscriptionsController {
  private readonly atLeastOnceCustomers: ReadonlySet<string>;

  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly postgres: Postgres,
    private readonly config: Config,
  ) {
    this.atLeastOnceCustomers = new Set(config.settings.AT_LEAST_ONCE_SENDING_CUSTOMERS);
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
    summary: 'One subscription, with what is held for it.',
    status: 200,
    answer: subscriptionWithHeldOutput,
    problems: unknownSubscription,
  })
  async read(@Param('subscriptionId', ResourceId) subscriptionId: string): Promise<ShownWithHeld> {
    return this.showWithHeld(await this.subscriptions.get(subscriptionId));
  }

  @Patch(':subscriptionId')
  @AdminOperation({
    id: 'subscription_change',
    summary: 'Says how its deliveries are sent: how often, how fast, in what order.',
    description:
      'A field left out stays as it is. Counts for every delivery that is sent from now on. A disabled or paused subscription stays so.',
    body: subscriptionChangesInput,
    status: 200,
    answer: subscriptionOutput,
    problems: unknownSubscription,
  })
  async change(@Param('subscriptionId', ResourceId) subscriptionId: string, @Body() body: unknown): Promise<Shown> {
    const changes = checkInput(subscriptionChangesInput, body);
    if (typeof changes.timeoutSeconds === 'number') checkTimeout(changes.timeoutSeconds, this.config.settings);
    if (Object.keys(changes).length === 0) return this.show(await this.subscriptions.get(subscriptionId));
    return this.show(await this.subscriptions.set(subscriptionId, changes));
  }

  @Patch(':subscriptionId/credentials')
  @AdminOperation({
    id: 'subscription_change_credentials',
    summary:
      'Says how its receiver is shown that a call is ours: the Authorization header, TLS certificates, own headers.',
    description:
      'Counts for every delivery that is sent from now on. Its callback is not tried first; failed deliveries can be retried.',
    body: credentialChangesInput,
    status: 200,
    answer: subscriptionOutput,
    problems: {
      ...unknownSubscription,
      409: '`credentials-unreadable`: those there are cannot be decrypted; give all three parts.',
    },
  })
  async changeCredentials(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
    @Body() body: unknown,
  ): Promise<Shown> {
    const changes = readCredentialChanges(body, Date.now());
    if (Object.keys(changes).length === 0) return this.show(await this.subscriptions.get(subscriptionId));
    return this.show(await this.subscriptions.setCredentials(subscriptionId, changes));
  }

  @Post(':subscriptionId/enable')
  @NeedsUserRole('operator')
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
    return this.show(await this.subscriptions.enable(subscriptionId));
  }

  @Post(':subscriptionId/pause')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'subscription_pause',
    summary: 'Holds its deliveries, those of new notifications too.',
    description:
      'Calls that are open go on. One that is paused already stays as it is. Deliveries can become too old meanwhile, or be cancelled.',
    status: 200,
    answer: subscriptionOutput,
    problems: unknownSubscription,
  })
  async pause(@Param('subscriptionId', ResourceId) subscriptionId: string): Promise<Shown> {
    return this.show(await this.subscriptions.pause(subscriptionId));
  }

  @Post(':subscriptionId/resume')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'subscription_resume',
    summary: 'Sends what is held for it, the oldest first, at the pace of its endpoint.',
    description: 'One that is not paused stays as it is.',
    status: 200,
    answer: subscriptionOutput,
    problems: { ...unknownSubscription, 409: '`subscription-dropping`: what it held is still being dropped.' },
  })
  async resume(@Param('subscriptionId', ResourceId) subscriptionId: string): Promise<Shown> {
    return this.show(await this.subscriptions.resume(subscriptionId));
  }

  @Post(':subscriptionId/drop-held')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'subscription_drop_held',
    summary: 'Cancels what is held for a paused subscription at this moment.',
    description:
      'Within seconds, longer where a million is held: `held.isDropping` says whether it goes on. What is accepted later is held as before.',
    status: 202,
    answer: subscriptionWithHeldOutput,
    problems: { ...unknownSubscription, 409: '`subscription-not-paused`: pause it first.' },
  })
  async dropHeld(@Param('subscriptionId', ResourceId) subscriptionId: string): Promise<ShownWithHeld> {
    return this.showWithHeld(await this.subscriptions.dropHeld(subscriptionId));
  }

  private show(subscription: Subscription): Shown {
    return subscriptionToShow(subscription, guaranteeOf(subscription, this.atLeastOnceCustomers));
  }

  private async showWithHeld(subscription: Subscription): Promise<ShownWithHeld> {
    const held = await readHeld(this.postgres, subscription.id, mostHeldCounted);
    return { ...this.show(subscription), held: heldToShow(held) };
  }
}

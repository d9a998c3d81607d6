import { Body, Delete, Get, Header, Headers, Param, Patch, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type * as z from 'zod';
import { ApplicationDirectory } from '../auth/application-directory.service.js';
import type { Application } from '../auth/application.js';
import { AdminController, CurrentApplication } from '../auth/auth.decorators.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ChannelDirectory } from '../channels/channel-directory.service.js';
import { Config } from '../config/config.module.js';
import { credentialChangesInput, readCredentialChanges } from '../credentials/credentials-io.js';
import { CreationRequests, type Reserve } from '../request-keys/creation-requests.service.js';
import { checkInput } from '../infra/http/check-input.js';
import { requireMatch } from '../infra/http/if-match.js';
import { ValidationProblem } from '../infra/http/problem.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { deletedMeanwhile } from '../openapi/idempotency-headers.js';
import { checkTimeout } from './call-timeout.js';
import { CallbackProof } from './callback-proof.service.js';
import { ProvedChanges } from './proved-changes.service.js';
import { SubscriptionAnswers, type Shown, type ShownWithHeld } from './subscription-answers.service.js';
import { versionOf } from './subscription-changes.js';
import type { ListedSubscription } from './subscription-directory.service.js';
import {
  checkChannels,
  newSubscriptionInput,
  readNewSubscription,
  subscriptionChangesInput,
} from './subscription-input.js';
import { changesSubscription, unknownSubscription } from './subscription-operation.js';
import { createdSubscriptionOutput, subscriptionOutput, subscriptionWithHeldOutput } from './subscriptions-io.js';
import { SubscriptionsService } from './subscriptions.service.js';

const overShare = {
  409: '`too-many-subscriptions`, `subscriptions-too-large`, `too-many-filter-names`, `too-many-unfiltered`: its owner would have more than one application may.',
};
const channelRemoved = '`channel-removed`: a channel that it names was removed meanwhile.';

/**
 * The operator's view and settings of subscriptions. Subscribers register and change their own in the Notificaties API.
 */
@AdminController('subscriptions', 'subscriptions')
export class SubscriptionsController {
  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly requests: CreationRequests,
    private readonly channels: ChannelDirectory,
    private readonly applications: ApplicationDirectory,
    private readonly proof: CallbackProof,
    private readonly provedChanges: ProvedChanges,
    private readonly answers: SubscriptionAnswers,
    private readonly catalogue: Catalogue,
    private readonly ledgerClock: LedgerClock,
    private readonly config: Config,
  ) {}

  @Post()
  @Header('cache-control', 'no-store')
  @AdminOperation({
    id: 'subscription_create',
    summary: 'Makes a subscription for an application.',
    description:
      'Checked as an abonnement is: the callback is called twice, with a message on channel `test`: without authorization, which it must refuse, and with it, which it must accept.',
    body: newSubscriptionInput,
    isIdempotent: true,
    status: 201,
    answer: createdSubscriptionOutput,
    hasEntityTag: true,
    problems: { 409: `${overShare[409]} ${channelRemoved} ${deletedMeanwhile}` },
  })
  async create(
    @Body() body: unknown,
    @CurrentApplication() caller: Application,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.output<typeof createdSubscriptionOutput>> {
    const input = checkInput(newSubscriptionInput, body);
    const asked = { application: caller.clientId, operation: 'create-subscription', input, hasSecret: true } as const;
    const done = await this.requests.carryOut(
      { request, reply },
      asked,
      (reserve) => this.make(input, caller, reserve),
      (id) => this.subscriptions.getCreated(id),
    );
    if (done.kind === 'created') {
      const { subscription, secret = null } = done.created;
      return { ...this.answers.tagged(subscription, reply), signingSecret: secret };
    }
    return this.answers.tagged(done.found, reply);
  }

  @Get(':subscriptionId')
  @AdminOperation({
    id: 'subscription_read',
    summary: 'One subscription, with what is held for it.',
    description: 'The ETag is that of the subscription; what is held for it changes all the time.',
    status: 200,
    answer: subscriptionWithHeldOutput,
    hasEntityTag: true,
    problems: unknownSubscription,
  })
  async read(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ShownWithHeld> {
    return this.answers.taggedWithHeld(await this.subscriptions.get(subscriptionId), reply);
  }

  @Patch(':subscriptionId')
  @AdminOperation({
    id: 'subscription_change',
    summary: 'Changes what it gets, where that goes, and how it is sent: how often, how fast, in what order.',
    description:
      'A field left out stays as it is. Channels count for notifications accepted from now on, everything else for every delivery that is sent from now on. A disabled subscription stays so without a `callbackUrl`, a paused one in any case.',
    ...changesSubscription,
    body: subscriptionChangesInput,
    status: 200,
    answer: subscriptionOutput,
    problems: {
      ...unknownSubscription,
      409: `${overShare[409]} ${channelRemoved} \`changed-while-proved\`: another request changed it while its callback was called. \`credentials-unreadable\`: its callback was not called, as the process that answers cannot decrypt its secrets.`,
    },
  })
  async change(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
    @Body() body: unknown,
    @Headers('if-match') ifMatch: string | undefined,
    @CurrentApplication() caller: Application,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Shown> {
    const changes = checkInput(subscriptionChangesInput, body);
    if (typeof changes.timeoutSeconds === 'number') checkTimeout(changes.timeoutSeconds, this.config.settings);
    const subscription = await this.subscriptions.get(subscriptionId);
    if (changes.channels) checkChannels(changes.channels, this.findChannel);
    // Also here, so that no callback is called for a change that is refused.
    requireMatch(ifMatch, versionOf(subscription));
    if (Object.keys(changes).length === 0) return this.answers.tagged(subscription, reply);
    const { callbackUrl } = changes;
    const set = (condition: string | undefined) =>
      this.subscriptions.set(subscriptionId, changes, { ifMatch: condition });
    const changed = await (callbackUrl === undefined
      ? set(ifMatch)
      : this.provedChanges.make({
          read: subscription,
          changes: { callbackUrl },
          caller,
          readAgain: async () => {
            const now = await this.subscriptions.get(subscriptionId);
            requireMatch(ifMatch, versionOf(now));
            return now;
          },
          write: set,
        }));
    return this.answers.tagged(changed, reply);
  }

  @Delete(':subscriptionId')
  @AdminOperation({
    id: 'subscription_delete',
    summary: 'Deletes a subscription. Deliveries that have not ended are cancelled.',
    description: 'Its secrets are not kept. Its deliveries, dead letters too, can be found as long as any others.',
    honoursIfMatch: true,
    status: 204,
    problems: unknownSubscription,
  })
  async remove(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
    @Headers('if-match') ifMatch: string | undefined,
  ): Promise<void> {
    await this.subscriptions.remove(subscriptionId, { ifMatch });
  }

  @Patch(':subscriptionId/credentials')
  @AdminOperation({
    id: 'subscription_change_credentials',
    summary:
      'Says how its receiver is shown that a call is ours: the Authorization header, TLS certificates, own headers.',
    description:
      'Counts for every delivery that is sent from now on. Its callback is not tried first; failed deliveries can be retried.',
    ...changesSubscription,
    body: credentialChangesInput,
    status: 200,
    answer: subscriptionOutput,
    problems: {
      ...unknownSubscription,
      409: `\`credentials-unreadable\`: those there are cannot be decrypted; give all three parts. ${overShare[409]}`,
    },
  })
  async changeCredentials(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
    @Body() body: unknown,
    @Headers('if-match') ifMatch: string | undefined,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Shown> {
    const changes = readCredentialChanges(body, this.ledgerClock.now());
    if (Object.keys(changes).length === 0) {
      const subscription = await this.subscriptions.get(subscriptionId);
      requireMatch(ifMatch, versionOf(subscription));
      return this.answers.tagged(subscription, reply);
    }
    return this.answers.tagged(await this.subscriptions.setCredentials(subscriptionId, changes, { ifMatch }), reply);
  }

  private async make(
    described: z.output<typeof newSubscriptionInput>,
    caller: Application,
    reserve: Reserve,
  ): Promise<{ subscription: ListedSubscription; secret: string | undefined }> {
    await this.catalogue.refresh();
    const { ownerClientId, ...input } = readNewSubscription(described, this.findChannel, this.ledgerClock.now());
    if (!this.applications.find(ownerClientId)) throw unknownOwner();
    if (typeof input.timeoutSeconds === 'number') checkTimeout(input.timeoutSeconds, this.config.settings);
    await this.proof.proveNew(input, caller);
    const how = { isSigned: this.config.settings.SIGN_BY_DEFAULT, reserve };
    return this.subscriptions.create(ownerClientId, input, how);
  }

  private readonly findChannel = (name: string) => this.channels.find(name);
}

const unknownOwner = () =>
  new ValidationProblem([
    { name: 'ownerClientId', code: 'invalid', reason: 'There is no application with this client id.' },
  ]);

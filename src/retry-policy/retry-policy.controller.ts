import { Body, Delete, Get, Headers, Param, Put, Query } from '@nestjs/common';
import { AdminController } from '../auth/auth.decorators.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { checkInput } from '../infra/http/check-input.js';
import { requireMatch } from '../infra/http/if-match.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { NotFoundProblem } from '../infra/http/problem.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import { unknownSubscription } from '../subscriptions/subscription-operation.js';
import {
  fieldsFromQuery,
  generalPolicyInput,
  policyOverrideInput,
  policyOverrideQuery,
  type RetryPolicyOverride,
} from './policy-input.js';
import {
  generalPolicyOutput,
  preview,
  previewOutput,
  subscriptionPolicy,
  subscriptionPolicyOutput,
} from './policy-output.js';
import { RetryPolicies } from './retry-policies.service.js';
import type { RetryPolicy } from './retry-schedule.js';

@AdminController('retry policy')
export class RetryPolicyController {
  constructor(
    private readonly policies: RetryPolicies,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly catalogue: Catalogue,
  ) {}

  @Get('retry-policy')
  @AdminOperation({
    id: 'retry_policy_read',
    summary: 'The retry policy of every subscription that has none of its own.',
    status: 200,
    answer: generalPolicyOutput,
    hasEntityTag: true,
  })
  async read(): Promise<RetryPolicy> {
    await this.catalogue.refresh();
    return this.policies.general;
  }

  @Put('retry-policy')
  @AdminOperation({
    id: 'retry_policy_replace',
    summary: 'Replaces the retry policy.',
    description: 'A field left out gets its default. Counts from the next failure of every delivery on.',
    body: generalPolicyInput,
    status: 200,
    answer: generalPolicyOutput,
    hasEntityTag: true,
    honoursIfMatch: true,
  })
  async replace(@Headers('if-match') ifMatch: string | undefined, @Body() body: unknown): Promise<RetryPolicy> {
    await this.policies.replaceGeneral(checkInput(generalPolicyInput, body), (before) => requireMatch(ifMatch, before));
    return this.policies.general;
  }

  @Get('retry-policy/preview')
  @AdminOperation({
    id: 'retry_policy_preview',
    summary: 'Each attempt of a delivery that never succeeds, with its delay and the time since the first.',
    description: 'Fields in the query are tried out over the saved policy; nothing is saved.',
    query: policyOverrideQuery,
    status: 200,
    answer: previewOutput,
  })
  async preview(@Query() query: Record<string, unknown>): Promise<ReturnType<typeof preview>> {
    const tried = checkInput(policyOverrideQuery, fieldsFromQuery(query));
    await this.catalogue.refresh();
    return preview({ ...this.policies.general, ...tried });
  }

  @Get('subscriptions/:subscriptionId/retry-policy')
  @AdminOperation({
    id: 'subscription_retry_policy_read',
    summary: 'The retry policy that counts for a subscription, and which fields of it are its own.',
    status: 200,
    answer: subscriptionPolicyOutput,
    hasEntityTag: true,
    problems: unknownSubscription,
  })
  async readOverride(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
  ): Promise<ReturnType<typeof subscriptionPolicy>> {
    await this.mustExist(subscriptionId);
    return this.ofSubscription(subscriptionId);
  }

  @Put('subscriptions/:subscriptionId/retry-policy')
  @AdminOperation({
    id: 'subscription_retry_policy_replace',
    summary: 'Replaces the retry policy of its own that a subscription has.',
    description: 'A field left out follows the general policy, also when that changes.',
    honoursIfMatch: true,
    body: policyOverrideInput,
    status: 200,
    answer: subscriptionPolicyOutput,
    hasEntityTag: true,
    problems: unknownSubscription,
  })
  async replaceOverride(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
    @Body() body: unknown,
    @Headers('if-match') ifMatch: string | undefined,
  ): Promise<ReturnType<typeof subscriptionPolicy>> {
    const override = checkInput(policyOverrideInput, body);
    await this.mustExist(subscriptionId);
    await this.policies.replaceOverride(subscriptionId, override, matching(ifMatch));
    return this.ofSubscription(subscriptionId);
  }

  @Delete('subscriptions/:subscriptionId/retry-policy')
  @AdminOperation({
    id: 'subscription_retry_policy_delete',
    summary: 'Makes a subscription follow the general policy in everything.',
    honoursIfMatch: true,
    status: 204,
    problems: unknownSubscription,
  })
  async removeOverride(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
    @Headers('if-match') ifMatch: string | undefined,
  ): Promise<void> {
    await this.mustExist(subscriptionId);
    if (this.policies.override(subscriptionId))
      await this.policies.replaceOverride(subscriptionId, null, matching(ifMatch));
    else requireMatch(ifMatch, this.ofSubscription(subscriptionId));
  }

  private async mustExist(subscriptionId: string): Promise<void> {
    await this.catalogue.refresh(); // another process may just have made or deleted it
    if (!this.subscriptions.find(subscriptionId)) throw new NotFoundProblem('There is no such subscription.');
  }

  private ofSubscription(subscriptionId: string): ReturnType<typeof subscriptionPolicy> {
    return subscriptionPolicy(this.policies.for(subscriptionId), this.policies.override(subscriptionId));
  }
}

/** Whether the policy of a subscription is in the state that a request names. */
const matching = (ifMatch: string | undefined) => (policy: RetryPolicy, override: RetryPolicyOverride | undefined) =>
  requireMatch(ifMatch, subscriptionPolicy(policy, override));

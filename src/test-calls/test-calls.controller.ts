import { Header, Param, Post } from '@nestjs/common';
import type * as z from 'zod';
import { AdminController } from '../auth/auth.decorators.js';
import { NeedsUserRole } from '../auth/user-roles.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import { testCallOutput } from './test-call-output.js';
import { TestCalls } from './test-calls.service.js';

@AdminController('subscriptions', 'subscriptions/:subscriptionId/test')
export class TestCallsController {
  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly testCalls: TestCalls,
  ) {}

  @Post()
  @NeedsUserRole('operator')
  @Header('cache-control', 'no-store')
  @AdminOperation({
    id: 'subscription_test',
    summary: 'Sends a test notification to the callback now, and answers what came of it.',
    description:
      'With credentials, signatures and time limit of the subscription, disabled and paused ones included; on channel `test`, as when an abonnement is made. It is no delivery: nothing is retried or kept, and nothing counts for the endpoint.',
    status: 200,
    answer: testCallOutput,
    problems: {
      404: 'There is no such subscription.',
      409: '`test-call-under-way`: another test of it has not ended.',
    },
  })
  async test(@Param('subscriptionId', ResourceId) subscriptionId: string): Promise<z.output<typeof testCallOutput>> {
    return this.testCalls.make(await this.subscriptions.get(subscriptionId));
  }
}

import { Get, Query } from '@nestjs/common';
import type * as z from 'zod';
import { AdminController } from '../auth/auth.decorators.js';
import { ReadsMuch } from '../auth/caller-turn.interceptor.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { checkInput } from '../infra/http/check-input.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import { deadLettersOutput, deadLettersQuery, deadLettersToShow, soughtBy } from './dead-letters-io.js';
import { KeptGroups } from './kept-groups.service.js';

@AdminController('deliveries', 'dead-letters')
export class DeadLettersController {
  constructor(
    private readonly groups: KeptGroups,
    private readonly catalogue: Catalogue,
    private readonly subscriptions: SubscriptionDirectory,
  ) {}

  @Get()
  @ReadsMuch()
  @AdminOperation({
    id: 'dead_letters',
    summary: 'Dead letters, grouped by subscription, state and error class.',
    description:
      'Each parameter narrows it. Looks at up to 200,000 dead letters (40,000 with `channel`), first at some of each subscription and day, and for about a second: where there are more, `isComplete` is false, and `isAtLeast` of the groups that it concerns is true. The single ones: `GET /admin/v1/deliveries` with the `subscription`, `state` and `errorClass` of a group.',
    query: deadLettersQuery,
    status: 200,
    answer: deadLettersOutput,
  })
  async list(@Query() query: Record<string, string>): Promise<z.output<typeof deadLettersOutput>> {
    const sought = soughtBy(checkInput(deadLettersQuery, query));
    await this.catalogue.refresh();
    return deadLettersToShow(await this.groups.find(sought), (id) => this.subscriptions.find(id));
  }
}

import { Get, Query } from '@nestjs/common';
import type * as z from 'zod';
import { AdminController } from '../auth/auth.decorators.js';
import { ReadsMuch } from '../auth/caller-turn.interceptor.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { checkInput } from '../infra/http/check-input.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { readSituations } from '../ledger/read-situations.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import { OpenEndpoints } from './open-endpoints.service.js';
import { situationsOutput, situationsQuery, situationToShow } from './situations-io.js';

/** How it stands with subscriptions that somebody looks at. */
@AdminController('subscriptions', 'subscriptions/situations')
export class SituationsController {
  constructor(
    private readonly catalogue: Catalogue,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly openEndpoints: OpenEndpoints,
    private readonly ledgerClock: LedgerClock,
    private readonly postgres: Postgres,
  ) {}

  @Get()
  @ReadsMuch()
  @AdminOperation({
    id: 'subscription_situations',
    summary: 'How it stands with subscriptions: what is held, waits or failed, and whether their endpoint is parked.',
    description: 'Those that do not exist are left out.',
    query: situationsQuery,
    status: 200,
    answer: situationsOutput,
  })
  async read(@Query() query: Record<string, string>): Promise<z.output<typeof situationsOutput>> {
    const { ids } = checkInput(situationsQuery, query);
    await this.catalogue.refresh(); // another process may just have made or deleted one
    const asked = ids.map((id) => this.subscriptions.find(id)).filter((one) => one !== undefined);
    const callbacks = new Map(asked.map((each) => [each.id, each]));
    const [situations] = await Promise.all([
      readSituations(this.postgres, [...callbacks.keys()], this.ledgerClock.now()),
      this.openEndpoints.refresh(),
    ]);
    const endpointOf = (id: string) => this.openEndpoints.of(callbacks.get(id)!);
    return { situations: situations.map((each) => situationToShow(each, endpointOf(each.subscriptionId))) };
  }
}

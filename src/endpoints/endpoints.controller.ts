import { Body, Get, Post } from '@nestjs/common';
import type * as z from 'zod';
import { AuditLog } from '../audit/audit-log.js';
import { AdminController } from '../auth/auth.decorators.js';
import { NeedsUserRole } from '../auth/user-roles.js';
import { checkInput } from '../infra/http/check-input.js';
import { NotFoundProblem } from '../infra/http/problem.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { readPaces } from '../ledger/held-subscriptions.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { SubscriptionsService } from '../subscriptions/subscriptions.service.js';
import { endpointListOutput, endpointResetInput, endpointsToShow, mostPaced } from './endpoints-io.js';
import { OpenEndpoints } from './open-endpoints.service.js';
import { addressOf, endpointsMeant, originOf } from './origin.js';

const notOpen =
  'No circuit breaker of this address is open. Where subscriptions call this URL with and without a TLS identity of their own, give the one with an identity as it is listed.';

@AdminController('endpoints', 'endpoints')
export class EndpointsController {
  constructor(
    private readonly openEndpoints: OpenEndpoints,
    private readonly subscriptions: SubscriptionsService,
    private readonly postgres: Postgres,
  ) {}

  @Get()
  @AdminOperation({
    id: 'endpoint_list',
    summary: 'The endpoints whose circuit breaker is open, the one that has been so longest first.',
    description:
      'At most 10,000. Every other endpoint gets its deliveries; those that cannot take them as fast as they come are `paced`.',
    status: 200,
    answer: endpointListOutput,
  })
  async list(): Promise<z.output<typeof endpointListOutput>> {
    const [subscriptions, paces] = await Promise.all([
      this.subscriptions.list(),
      readPaces(this.postgres, mostPaced),
      this.openEndpoints.refresh(),
    ]);
    return endpointsToShow(this.openEndpoints.list(), subscriptions, paces);
  }

  // With the address in the body: a URL within the path is changed by many a proxy.
  @Post('reset')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'endpoint_reset',
    summary: 'Closes the circuit breaker of an endpoint: what is held for it goes out again, slowly at first.',
    description:
      'It opens again if calls go on failing. Not needed after a recovery: probes find that out within a minute, unless the receiver has asked for a longer time by `Retry-After`.',
    body: endpointResetInput,
    status: 204,
    problems: { 404: notOpen },
  })
  async reset(@Body() body: unknown): Promise<void> {
    const { address } = checkInput(endpointResetInput, body);
    if (await this.close(address)) return;
    // An origin, however it is spelt, is only itself: asked for twice, its reset does not close the URL with the slash.
    const [origin, url] = [originOf(address), addressOf({ callbackUrl: address, credentials: {} })];
    const isOrigin = url === `${origin}/` && !address.endsWith('/');
    if (await this.close(isOrigin ? origin : url)) return;
    if (!isOrigin && (await this.close(...(await this.openOf(address))))) return;
    throw new NotFoundProblem(notOpen);
  }

  /** Of the endpoints that the list of subscriptions takes the address for. */
  private async openOf(address: string): Promise<string[]> {
    const [subscriptions] = await Promise.all([this.subscriptions.list(), this.openEndpoints.refresh()]);
    const meant = endpointsMeant(address, subscriptions);
    return [...(meant ?? [])].filter((each) => this.openEndpoints.all.has(each));
  }

  private close(...addresses: string[]): Promise<boolean> {
    return this.openEndpoints.reset(addresses, (query, closed) =>
      AuditLog.noteAll(
        query,
        closed.map(({ address, openedAt, reason, failures }) => {
          const before = { openedAt, reason, failures };
          return { action: 'endpoint.reset', subject: `endpoint/${address}`, before, after: null };
        }),
      ),
    );
  }
}

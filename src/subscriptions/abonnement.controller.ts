import { Body, Controller, Delete, Get, HttpCode, Param, Patch, Post, Put, Query, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Application } from '../auth/application.js';
import { CurrentApplication, RequireScope } from '../auth/auth.decorators.js';
import { scopes } from '../auth/scopes.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { ChannelDirectory } from '../channels/channel-directory.service.js';
import { outgoingName } from '../channels/filter-names.js';
import { FieldReader } from '../infra/http/fields.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import { KnownQuery } from '../infra/http/known-query.pipe.js';
import { originOf } from '../infra/http/origin.js';
import { PermissionProblem } from '../infra/http/problem.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { CallbackProbe } from './callback-probe.service.js';
import { readAbonnement, readChanges } from './read-abonnement.js';
import type { DeliveryGuarantee, Subscription } from './subscription.js';
import { SubscriptionsService, type SubscriptionInput } from './subscriptions.service.js';

/** A subscription as the standard writes it, without `auth`: a secret is never given back. */
interface Abonnement {
  url: string;
  callbackUrl: string;
  kanalen: { filters: Record<string, string>; naam: string }[];
  /** Ours, beyond the standard; only where it was set. */
  deliveryGuarantee?: DeliveryGuarantee;
}

const path = '/api/v1/abonnement';

@ApiExcludeController() // it has a document of its own (src/openapi)
@Controller(path)
export class AbonnementController {
  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly channels: ChannelDirectory,
    private readonly probe: CallbackProbe,
    private readonly catalogue: Catalogue,
  ) {}

  @Get()
  @RequireScope(scopes.publish, scopes.consume)
  async list(@Query(new KnownQuery()) _: object, @Req() request: FastifyRequest): Promise<Abonnement[]> {
    return (await this.subscriptions.list()).map((subscription) => present(subscription, request));
  }

  @Get(':uuid')
  @RequireScope(scopes.publish, scopes.consume)
  async retrieve(
    @Param('uuid', ResourceId) uuid: string,
    @Query(new KnownQuery()) _: object,
    @Req() request: FastifyRequest,
  ): Promise<Abonnement> {
    return present(await this.subscriptions.get(uuid), request);
  }

  @Post()
  @RequireScope(scopes.consume)
  async create(
    @Body() body: JsonObject,
    @CurrentApplication() application: Application,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Abonnement> {
    await this.catalogue.refresh();
    const input = readAbonnement(new FieldReader(body), this.findChannel);
    await this.probe.prove({ ...input, isUrlNew: true });
    const abonnement = present(await this.subscriptions.create(application.clientId, input), request);
    void reply.header('location', abonnement.url);
    return abonnement;
  }

  @Put(':uuid')
  @RequireScope(scopes.consume)
  async update(
    @Param('uuid', ResourceId) uuid: string,
    @Body() body: JsonObject,
    @CurrentApplication() application: Application,
    @Req() request: FastifyRequest,
  ): Promise<Abonnement> {
    const subscription = await this.own(uuid, application);
    return this.change(subscription, readAbonnement(new FieldReader(body), this.findChannel), request);
  }

  @Patch(':uuid')
  @RequireScope(scopes.consume)
  async partialUpdate(
    @Param('uuid', ResourceId) uuid: string,
    @Body() body: JsonObject,
    @CurrentApplication() application: Application,
    @Req() request: FastifyRequest,
  ): Promise<Abonnement> {
    const subscription = await this.own(uuid, application);
    const changes = readChanges(new FieldReader(body), this.findChannel, { isPartial: true });
    return this.change(subscription, changes, request);
  }

  @Delete(':uuid')
  @HttpCode(204)
  @RequireScope(scopes.consume)
  async destroy(
    @Param('uuid', ResourceId) uuid: string,
    @CurrentApplication() application: Application,
  ): Promise<void> {
    const { id } = await this.own(uuid, application);
    await this.subscriptions.remove(id);
  }

  private readonly findChannel = (name: string) => this.channels.find(name);

  /**
   * @throws {NotFoundProblem}
   * @throws {PermissionProblem} unless it is the application's own, or the application is a superuser
   */
  private async own(uuid: string, { clientId, isSuperuser }: Application): Promise<Subscription> {
    const subscription = await this.subscriptions.get(uuid);
    if (subscription.ownerClientId === clientId || isSuperuser) return subscription;
    throw new PermissionProblem('permission_denied', 'This abonnement belongs to another application.');
  }

  /** A callback that was proved before, with the same authorization, is not called again, unless it said it was gone. */
  private async change(
    subscription: Subscription,
    changes: Partial<SubscriptionInput>,
    request: FastifyRequest,
  ): Promise<Abonnement> {
    const { callbackUrl = subscription.callbackUrl, auth = subscription.auth } = changes;
    const isUrlNew = callbackUrl !== subscription.callbackUrl;
    if (isUrlNew || auth !== subscription.auth || subscription.disabledAt)
      await this.probe.prove({ callbackUrl, auth, isUrlNew });
    return present(await this.subscriptions.update(subscription.id, changes), request);
  }
}

const present = (
  { id, callbackUrl, channels, deliveryGuarantee }: Subscription,
  request: FastifyRequest,
): Abonnement => ({
  url: `${originOf(request)}${path}/${id}`,
  callbackUrl,
  kanalen: channels.map(({ channel, filters }) => ({
    filters: Object.fromEntries(Object.entries(filters).map(([name, value]) => [outgoingName(name), value])),
    naam: channel,
  })),
  ...(deliveryGuarantee && { deliveryGuarantee }),
});

import { Body, Controller, Delete, Get, Param, Patch, Post, Put, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import * as z from 'zod';
import type { Application } from '../auth/application.js';
import { Audited, CurrentApplication } from '../auth/auth.decorators.js';
import { scopes } from '../auth/scopes.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { KeptAnswers } from '../catalogue/kept-answers.service.js';
import { ChannelDirectory } from '../channels/channel-directory.service.js';
import { shownName } from '../channels/filter-names.js';
import { Config } from '../config/config.module.js';
import type { JsonObject } from '../infra/http/json-body.pipe.js';
import { KnownQuery } from '../infra/http/known-query.pipe.js';
import { baseUrlOf } from '../infra/http/origin.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { LedgerClock } from '../liveness/ledger-clock.service.js';
import { FieldReader } from '../nrc/fields.js';
import { apiPath } from '../nrc/nrc-dialect.js';
import { NrcOperation } from '../nrc/nrc-operation.js';
import { locationHeader, uuidPath } from '../nrc/resource.js';
import { abonnementSchema, patchedAbonnementSchema } from './abonnement.js';
import { CallbackProof } from './callback-proof.service.js';
import { ProvedChanges } from './proved-changes.service.js';
import { readAbonnement, readChanges } from './read-abonnement.js';
import type { SubscriptionInput } from './subscription-changes.js';
import { SubscriptionDirectory, type ListedSubscription } from './subscription-directory.service.js';
import type { DeliveryGuarantee, Subscription } from './subscription.js';
import { SubscriptionsService } from './subscriptions.service.js';

/** A subscription as the standard writes it, without `auth`: a secret is never given back. */
interface Abonnement {
  url: string;
  callbackUrl: string;
  kanalen: { filters: Record<string, string>; naam: string }[];
  /** An addition of ours to the standard; only where it was set. */
  deliveryGuarantee?: DeliveryGuarantee;
}

const path = `${apiPath}/abonnement`;
const either = [scopes.publish, scopes.consume];
/** A header, as clients of the standard know all fields of the body. */
const secretHeader = 'Signing-Secret';
const signingSecret = z
  .string()
  .optional()
  .describe(
    'Beyond the standard, where the server signs by default (SIGN_BY_DEFAULT): the secret that notificaties are signed with, shown this once.',
  );

const shareText =
  'With this the application would have more abonnementen, or larger ones, filters on more different sets of names, or more of them that demand no filter of a kanaal, than one may have (SUBSCRIPTIONS_PER_APPLICATION, SUBSCRIPTION_BYTES_PER_APPLICATION, FILTER_NAME_SETS_PER_APPLICATION, UNFILTERED_SUBSCRIPTIONS_PER_APPLICATION). Or a kanaal that it names was removed meanwhile (`channel-removed`).';
const ownText = 'Only for its creator, or a superuser.';
const proofText =
  'The callback is called again when its URL or `auth` changes, when `credentials` is given, be it the same, or after it answered 410.';
const changeTexts = {
  409: `${shareText} Or the credentials there are cannot be decrypted, so that the callback was not called: repeat the request when every process has the key of encryption, or give all parts of \`credentials\`. Or another request changed the abonnement while its callback was called (\`changed-while-proved\`): read it, and repeat if need be.`,
};

@Audited()
@Controller(path)
export class AbonnementController {
  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly directory: SubscriptionDirectory,
    private readonly channels: ChannelDirectory,
    private readonly proof: CallbackProof,
    private readonly provedChanges: ProvedChanges,
    private readonly catalogue: Catalogue,
    private readonly kept: KeptAnswers,
    private readonly ledgerClock: LedgerClock,
    private readonly config: Config,
  ) {}

  @Get()
  @NrcOperation({
    id: 'abonnement_list',
    tag: 'abonnement',
    summary: 'List the abonnementen',
    description: 'Those of all applications, the oldest first.',
    scopes: either,
    status: 200,
    answer: z.array(abonnementSchema),
    problems: [400],
  })
  list(
    @Query(new KnownQuery()) _: object,
    @CurrentApplication() application: Application,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Buffer> {
    const base = baseUrlOf(request); // now: the socket of a caller that has left has no address
    return this.kept.answer(`abonnement of ${base}`, application.id, reply, () => ({
      before: '[',
      items: this.directory.list(),
      present: (subscription) => present(subscription, base),
      after: ']',
    }));
  }

  @Get(':uuid')
  @NrcOperation({
    id: 'abonnement_read',
    tag: 'abonnement',
    summary: 'Read an abonnement',
    description: 'No query parameter is known here, so each is refused.',
    scopes: either,
    path: uuidPath,
    status: 200,
    answer: abonnementSchema,
    problems: [400, 404],
  })
  async retrieve(
    @Param('uuid', ResourceId) uuid: string,
    @Query(new KnownQuery()) _: object,
    @Req() request: FastifyRequest,
  ): Promise<Abonnement> {
    return present(await this.subscriptions.get(uuid), baseUrlOf(request));
  }

  @Post()
  @NrcOperation({
    id: 'abonnement_create',
    tag: 'abonnement',
    summary: 'Create an abonnement',
    description:
      'The callback is called twice, with a message on kanaal `test`: without authorization, which it must refuse, and with `auth`, which it must accept.',
    scopes: [scopes.consume],
    body: abonnementSchema,
    status: 201,
    answer: abonnementSchema,
    answerHeaders: locationHeader.extend({ [secretHeader]: signingSecret }),
    problems: [409],
    problemTexts: { 409: shareText },
  })
  async create(
    @Body() body: JsonObject,
    @CurrentApplication() application: Application,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Abonnement> {
    await this.catalogue.refresh();
    const input = readAbonnement(new FieldReader(body), this.findChannel, this.ledgerClock.now());
    await this.proof.proveNew(input, application);
    const how = { isSigned: this.config.settings.SIGN_BY_DEFAULT };
    const { subscription, secret } = await this.subscriptions.create(application.clientId, input, how);
    if (secret !== undefined) void reply.header(secretHeader, secret).header('cache-control', 'no-store');
    const abonnement = present(subscription, baseUrlOf(request));
    void reply.header('location', abonnement.url);
    return abonnement;
  }

  @Put(':uuid')
  @NrcOperation({
    id: 'abonnement_update',
    tag: 'abonnement',
    summary: 'Replace an abonnement',
    description: `${ownText} kanalen left out are removed; deliveryGuarantee, credentials and alertEmail left out stay as they are. ${proofText}`,
    scopes: [scopes.consume],
    path: uuidPath,
    body: abonnementSchema,
    status: 200,
    answer: abonnementSchema,
    problems: [404, 409],
    problemTexts: changeTexts,
  })
  async update(
    @Param('uuid', ResourceId) uuid: string,
    @Body() body: JsonObject,
    @CurrentApplication() application: Application,
    @Req() request: FastifyRequest,
  ): Promise<Abonnement> {
    const subscription = await this.subscriptions.getOwn(uuid, application);
    const input = readAbonnement(new FieldReader(body), this.findChannel, this.ledgerClock.now());
    return this.change(subscription, input, application, request);
  }

  @Patch(':uuid')
  @NrcOperation({
    id: 'abonnement_partial_update',
    tag: 'abonnement',
    summary: 'Change an abonnement',
    description: `${ownText} A field left out stays as it is, \`auth\` and kanalen included. ${proofText}`,
    scopes: [scopes.consume],
    path: uuidPath,
    body: patchedAbonnementSchema,
    status: 200,
    answer: abonnementSchema,
    problems: [404, 409],
    problemTexts: changeTexts,
  })
  async partialUpdate(
    @Param('uuid', ResourceId) uuid: string,
    @Body() body: JsonObject,
    @CurrentApplication() application: Application,
    @Req() request: FastifyRequest,
  ): Promise<Abonnement> {
    const subscription = await this.subscriptions.getOwn(uuid, application);
    const changes = readChanges(new FieldReader(body), this.findChannel, {
      isPartial: true,
      nowMs: this.ledgerClock.now(),
    });
    return this.change(subscription, changes, application, request);
  }

  @Delete(':uuid')
  @NrcOperation({
    id: 'abonnement_delete',
    tag: 'abonnement',
    summary: 'Delete an abonnement',
    description: `${ownText} Deliveries that have not ended are cancelled.`,
    scopes: [scopes.consume],
    path: uuidPath,
    status: 204,
    problems: [404],
  })
  async destroy(
    @Param('uuid', ResourceId) uuid: string,
    @CurrentApplication() application: Application,
  ): Promise<void> {
    const { id } = await this.subscriptions.getOwn(uuid, application);
    await this.subscriptions.remove(id);
  }

  private readonly findChannel = (name: string) => this.channels.find(name);

  private async change(
    read: ListedSubscription,
    changes: Partial<SubscriptionInput>,
    caller: Application,
    request: FastifyRequest,
  ): Promise<Abonnement> {
    const base = baseUrlOf(request); // now: the socket of a caller that has left has no address
    const { id } = read;
    const readAgain = () => this.subscriptions.getOwn(id, caller);
    const write = (ifMatch: string) => this.subscriptions.update(id, changes, { ifMatch });
    return present(await this.provedChanges.make({ read, changes, caller, readAgain, write }), base);
  }
}

const present = ({ id, callbackUrl, channels, deliveryGuarantee }: Subscription, base: string): Abonnement => ({
  url: `${base}${path}/${id}`,
  callbackUrl,
  kanalen: channels.map(({ channel, filters }) => ({
    filters: Object.fromEntries(Object.entries(filters).map(([name, value]) => [shownName(name), value])),
    naam: channel,
  })),
  ...(deliveryGuarantee && { deliveryGuarantee }),
});

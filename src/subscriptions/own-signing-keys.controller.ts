import { Body, Controller, Delete, Get, Header, Param, Post, Query } from '@nestjs/common';
import * as z from 'zod';
import type { Application } from '../auth/application.js';
import { Audited, CurrentApplication } from '../auth/auth.decorators.js';
import { scopes } from '../auth/scopes.js';
import { checkInput } from '../infra/http/check-input.js';
import { KnownQuery } from '../infra/http/known-query.pipe.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { apiPath } from '../nrc/nrc-dialect.js';
import { NrcOperation } from '../nrc/nrc-operation.js';
import { beyondTheStandard, uuidPath } from '../nrc/resource.js';
import {
  addedSigningKeyOutput,
  addedToShow,
  newSigningKeyInput,
  rotationInput,
  signingKeyOutput,
  signingKeyToShow,
} from './signing-keys-io.js';
import { SigningKeys } from './signing-keys.service.js';
import { SubscriptionsService } from './subscriptions.service.js';

type Added = z.output<typeof addedSigningKeyOutput>;

const keyPath = uuidPath.extend({ keyId: z.string().meta({ format: 'uuid' }).describe('The `id` of the key.') });

/**
 * The signing keys of a subscription, for its subscriber: a resource of its own, so that clients of the standard never
 * meet it.
 */
@Controller(`${apiPath}/abonnement/:uuid/signing-keys`)
@Audited()
export class OwnSigningKeysController {
  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly signingKeys: SigningKeys,
  ) {}

  @Get()
  @NrcOperation({
    id: 'signingkey_list',
    tag: 'abonnement',
    summary: 'List the signing keys of an abonnement',
    description: `${beyondTheStandard} The newest first, without their secrets; those that were rotated and still sign are among them.`,
    scopes: [scopes.consume],
    path: uuidPath,
    status: 200,
    answer: z.array(signingKeyOutput),
    problems: [400, 404],
  })
  async list(
    @Param('uuid', ResourceId) uuid: string,
    @Query(new KnownQuery()) _: object,
    @CurrentApplication() application: Application,
  ): Promise<z.output<typeof signingKeyOutput>[]> {
    const { id } = await this.subscriptions.getOwn(uuid, application);
    return (await this.signingKeys.list(id)).map(signingKeyToShow);
  }

  @Post()
  @Header('cache-control', 'no-store')
  @NrcOperation({
    id: 'signingkey_create',
    tag: 'abonnement',
    summary: 'Have the notificaties of an abonnement signed',
    description: `${beyondTheStandard} Every notificatie that is sent from now on has the headers \`webhook-timestamp\` and \`webhook-signature\` of Standard Webhooks, signed with this key beside those that there are. The answer shows its secret, this once.`,
    scopes: [scopes.consume],
    path: uuidPath,
    body: newSigningKeyInput,
    status: 201,
    answer: addedSigningKeyOutput,
    problems: [404, 409],
    problemTexts: {
      409: 'The abonnement has as many signing keys as it may have, or the abonnementen of the application take as much memory as they may (SUBSCRIPTION_BYTES_PER_APPLICATION).',
    },
  })
  async create(
    @Param('uuid', ResourceId) uuid: string,
    @Body() body: unknown,
    @CurrentApplication() application: Application,
  ): Promise<Added> {
    const { id } = await this.subscriptions.getOwn(uuid, application);
    return addedToShow(await this.signingKeys.create(id, checkInput(newSigningKeyInput, body)));
  }

  @Post(':keyId/rotate')
  @Header('cache-control', 'no-store')
  @NrcOperation({
    id: 'signingkey_rotate',
    tag: 'abonnement',
    summary: 'Replace a signing key',
    description: `${beyondTheStandard} Notificaties are signed with both keys until the grace of the old one is over. The answer shows the new secret, this once.`,
    scopes: [scopes.consume],
    path: keyPath,
    body: rotationInput,
    status: 201,
    answer: addedSigningKeyOutput,
    problems: [404, 409],
    problemTexts: {
      409: 'The key was rotated before, or ten that were still sign, or the abonnementen of the application take as much memory as they may (SUBSCRIPTION_BYTES_PER_APPLICATION).',
    },
  })
  async rotate(
    @Param('uuid', ResourceId) uuid: string,
    @Param('keyId', ResourceId) keyId: string,
    @Body() body: unknown,
    @CurrentApplication() application: Application,
  ): Promise<Added> {
    const { id } = await this.subscriptions.getOwn(uuid, application);
    return addedToShow(await this.signingKeys.rotate(id, keyId, checkInput(rotationInput, body)));
  }

  @Delete(':keyId')
  @NrcOperation({
    id: 'signingkey_delete',
    tag: 'abonnement',
    summary: 'End a signing key',
    description: `${beyondTheStandard} At once, also where its grace is not over. Without any other one, notificaties are not signed.`,
    scopes: [scopes.consume],
    path: keyPath,
    status: 204,
    problems: [404],
  })
  async end(
    @Param('uuid', ResourceId) uuid: string,
    @Param('keyId', ResourceId) keyId: string,
    @CurrentApplication() application: Application,
  ): Promise<void> {
    const { id } = await this.subscriptions.getOwn(uuid, application);
    await this.signingKeys.end(id, keyId);
  }
}

import { Body, Delete, Get, Header, Param, Post } from '@nestjs/common';
import type * as z from 'zod';
import { AdminController } from '../auth/auth.decorators.js';
import { checkInput } from '../infra/http/check-input.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import {
  addedSigningKeyOutput,
  addedToShow,
  newSigningKeyInput,
  rotationInput,
  signingKeyListOutput,
  signingKeyToShow,
} from './signing-keys-io.js';
import { SigningKeys } from './signing-keys.service.js';
import { unknownSubscription } from './subscription-operation.js';
import { SubscriptionsService } from './subscriptions.service.js';

type Added = z.output<typeof addedSigningKeyOutput>;

const overShare =
  '`subscriptions-too-large`: the subscriptions of its owner would take more memory than those of one application may.';
const unknownKey = { 404: 'There is no such subscription, or it has no such key.' };

/** The signing keys of any subscription, for operators. A secret is in the answer that makes it and nowhere else. */
@AdminController('subscriptions', 'subscriptions/:subscriptionId/signing-keys')
export class SigningKeysController {
  constructor(
    private readonly subscriptions: SubscriptionsService,
    private readonly signingKeys: SigningKeys,
  ) {}

  @Get()
  @AdminOperation({
    id: 'signing_key_list',
    summary: 'The keys that deliveries of a subscription are signed with, without their secrets.',
    status: 200,
    answer: signingKeyListOutput,
    problems: unknownSubscription,
  })
  async list(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
  ): Promise<z.output<typeof signingKeyListOutput>> {
    const { id } = await this.subscriptions.get(subscriptionId);
    return { signingKeys: (await this.signingKeys.list(id)).map(signingKeyToShow) };
  }

  @Post()
  @Header('cache-control', 'no-store')
  @AdminOperation({
    id: 'signing_key_create',
    summary: 'Has the deliveries of a subscription signed with one more key. The answer shows its secret, this once.',
    description:
      'Counts for every delivery that is sent from now on, repeated ones too. docs/receiving.md says how to verify.',
    body: newSigningKeyInput,
    status: 201,
    answer: addedSigningKeyOutput,
    problems: { ...unknownSubscription, 409: `\`too-many-signing-keys\`: end one first. ${overShare}` },
  })
  async create(@Param('subscriptionId', ResourceId) subscriptionId: string, @Body() body: unknown): Promise<Added> {
    return addedToShow(await this.signingKeys.create(subscriptionId, checkInput(newSigningKeyInput, body)));
  }

  @Post(':keyId/rotate')
  @Header('cache-control', 'no-store')
  @AdminOperation({
    id: 'signing_key_rotate',
    summary: 'Replaces a key. Deliveries are signed with both until the grace of the old one is over.',
    body: rotationInput,
    status: 201,
    answer: addedSigningKeyOutput,
    problems: {
      ...unknownKey,
      409: `\`signing-key-rotated\`: it was rotated before. \`too-many-signing-keys\`: ten that were still sign. ${overShare}`,
    },
  })
  async rotate(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
    @Param('keyId', ResourceId) keyId: string,
    @Body() body: unknown,
  ): Promise<Added> {
    return addedToShow(await this.signingKeys.rotate(subscriptionId, keyId, checkInput(rotationInput, body)));
  }

  @Delete(':keyId')
  @AdminOperation({
    id: 'signing_key_end',
    summary: 'Ends a key at once. Without any other one, deliveries are not signed.',
    status: 204,
    problems: unknownKey,
  })
  async end(
    @Param('subscriptionId', ResourceId) subscriptionId: string,
    @Param('keyId', ResourceId) keyId: string,
  ): Promise<void> {
    await this.signingKeys.end(subscriptionId, keyId);
  }
}

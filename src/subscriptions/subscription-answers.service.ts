import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type * as z from 'zod';
import { Config } from '../config/config.module.js';
import { entityTagOf } from '../infra/http/if-match.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { readHeld } from '../ledger/read-held.js';
import { guaranteeOf } from './delivery-guarantee.js';
import { versionOf } from './subscription-changes.js';
import type { ListedSubscription } from './subscription-directory.service.js';
import {
  heldToShow,
  mostHeldCounted,
  subscriptionToShow,
  type subscriptionOutput,
  type subscriptionWithHeldOutput,
} from './subscriptions-io.js';

export type Shown = z.output<typeof subscriptionOutput>;
export type ShownWithHeld = z.output<typeof subscriptionWithHeldOutput>;

/** A subscription as the admin API answers with it. */
@Injectable()
export class SubscriptionAnswers {
  private readonly atLeastOnceCustomers: ReadonlySet<string>;

  constructor(
    private readonly postgres: Postgres,
    { settings }: Config,
  ) {
    this.atLeastOnceCustomers = new Set(settings.AT_LEAST_ONCE_SENDING_CUSTOMERS);
  }

  show(subscription: ListedSubscription): Shown {
    return subscriptionToShow(subscription, guaranteeOf(subscription, this.atLeastOnceCustomers));
  }

  /** With the ETag of the answer. */
  tagged(subscription: ListedSubscription, reply: FastifyReply): Shown {
    tag(subscription, reply);
    return this.show(subscription);
  }

  /** The ETag is that of the subscription: what is held for it changes all the time. */
  async taggedWithHeld(subscription: ListedSubscription, reply: FastifyReply): Promise<ShownWithHeld> {
    tag(subscription, reply);
    const held = await readHeld(this.postgres, subscription.id, mostHeldCounted);
    return { ...this.show(subscription), held: heldToShow(held) };
  }
}

function tag(subscription: ListedSubscription, reply: FastifyReply): void {
  void reply.header('etag', entityTagOf(versionOf(subscription)));
}

import { Get, Logger, Param, Post, Query } from '@nestjs/common';
import { AuditLog } from '../audit/audit-log.js';
import { AdminController } from '../auth/auth.decorators.js';
import { ReadsMuch } from '../auth/caller-turn.interceptor.js';
import { NeedsUserRole } from '../auth/user-roles.js';
import { Catalogue } from '../catalogue/catalogue.service.js';
import { AdminOperation } from '../openapi/admin-operation.js';
import { checkInput } from '../infra/http/check-input.js';
import { ConflictProblem, MaybeDoneProblem, NotFoundProblem } from '../infra/http/problem.js';
import { readBack } from '../infra/http/read-back.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { ResourceId } from '../infra/http/resource-id.pipe.js';
import { DeliveryReader, type KnownDelivery } from './delivery-reader.service.js';
import type { DeliveryKey } from '../ledger/delivery.js';
import { cancel } from '../ledger/cancel.js';
import type { AlsoThen } from '../ledger/change-state.js';
import { refuseAway, whileAway } from '../ledger/refuse-away.js';
import { retryNow } from '../ledger/retry-now.js';
import { stateOf } from '../ledger/state-of.js';
import { SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import { stateOf as stateOfSubscription } from '../subscriptions/subscription-state.js';
import { AttemptStates, type AttemptState } from '../delivery/attempt-states.js';
import { deliveriesQuery } from './deliveries-query.js';
import { boundedDescription, criteriaOf } from './search-query.js';
import {
  deliveryOutput,
  deliveryPageOutput,
  deliveryToShow,
  deliveryWithAttemptsOutput,
  deliveryWithAttemptsToShow,
  pageToShow,
} from './delivery-output.js';

const unknownDelivery = {
  404: 'There is no such delivery, or it is older than the retention.',
  ...whileAway,
};

@AdminController('deliveries', 'deliveries')
export class DeliveriesController {
  private readonly logger = new Logger(DeliveriesController.name);

  constructor(
    private readonly reader: DeliveryReader,
    private readonly postgres: Postgres,
    private readonly attemptStates: AttemptStates,
    private readonly catalogue: Catalogue,
    private readonly subscriptions: SubscriptionDirectory,
  ) {}

  @Get()
  @ReadsMuch()
  @AdminOperation({
    id: 'delivery_list',
    summary: 'Deliveries, newest notification first.',
    description: boundedDescription,
    query: deliveriesQuery,
    status: 200,
    answer: deliveryPageOutput,
  })
  async list(@Query() query: Record<string, string>): Promise<ReturnType<typeof pageToShow>> {
    const { limit = 50, cursor, ...search } = checkInput(deliveriesQuery, query);
    return pageToShow(await this.reader.list(criteriaOf(search), cursor, limit));
  }

  @Get(':notificationId/:subscriptionId')
  @ReadsMuch()
  @AdminOperation({
    id: 'delivery_read',
    summary: 'One delivery with every attempt, what its receiver answered, and what it does at this moment.',
    status: 200,
    answer: deliveryWithAttemptsOutput,
    problems: unknownDelivery,
  })
  async read(
    @Param('notificationId', ResourceId) notificationId: string,
    @Param('subscriptionId', ResourceId) subscriptionId: string,
  ): Promise<ReturnType<typeof deliveryWithAttemptsToShow>> {
    const key = { notificationId, subscriptionId };
    const delivery = await this.find(key);
    const [attempts, live] = await Promise.all([this.reader.attemptsOf(key), this.live(key)]);
    return deliveryWithAttemptsToShow(delivery, attempts, live);
  }

  @Post(':notificationId/:subscriptionId/retry')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'delivery_retry',
    summary: 'Makes the next attempt due now.',
    description:
      'Of a delivery that waits, or that ended without success: that one starts a new series of attempts. One of a subscription with a `ratePerSecond` goes when its rate allows that.',
    status: 202,
    answer: deliveryOutput,
    problems: {
      ...unknownDelivery,
      409: '`delivery-delivered`: it has arrived already. `body-erased`: there is nothing left to send. `subscription-deleted`, `subscription-disabled`: there is nobody to send it to. `subscription-paused`: it has not ended, and is held until the subscription is resumed. `delivery-in-line`: an earlier one about the same object goes first. Nothing was done.',
    },
  })
  async retry(
    @Param('notificationId', ResourceId) notificationId: string,
    @Param('subscriptionId', ResourceId) subscriptionId: string,
  ): Promise<ReturnType<typeof deliveryToShow>> {
    const key = { notificationId, subscriptionId };
    await refuseAway(this.postgres, key.notificationId);
    await this.refuseInVain(key);
    const result = await retryNow(this.postgres, key, noteAs('delivery.retried', key));
    if (result === 'not-found') throw noSuchDelivery();
    if (result === 'delivered') throw new ConflictProblem('delivery-delivered', 'The delivery has arrived already.');
    if (result === 'in-line')
      throw new ConflictProblem('delivery-in-line', 'An earlier delivery about the same object goes first.');
    if (result === 'erased') throw new ConflictProblem('body-erased', 'The body of the notification was erased.');
    return deliveryToShow(await this.findChanged(key));
  }

  @Post(':notificationId/:subscriptionId/cancel')
  @NeedsUserRole('operator')
  @AdminOperation({
    id: 'delivery_cancel',
    summary: 'Ends a delivery: no further attempt is made.',
    description: 'A call that is in flight is not stopped; if it succeeds, the delivery is delivered.',
    status: 200,
    answer: deliveryOutput,
    problems: { ...unknownDelivery, 409: '`delivery-ended`: it has ended already.' },
  })
  async cancel(
    @Param('notificationId', ResourceId) notificationId: string,
    @Param('subscriptionId', ResourceId) subscriptionId: string,
  ): Promise<ReturnType<typeof deliveryToShow>> {
    const key = { notificationId, subscriptionId };
    await refuseAway(this.postgres, key.notificationId);
    const result = await cancel(this.postgres, key, noteAs('delivery.cancelled', key));
    if (result === 'not-found') throw noSuchDelivery();
    if (result === 'ended') throw new ConflictProblem('delivery-ended', 'The delivery has ended already.');
    return deliveryToShow(await this.findChanged(key));
  }

  /** Undefined while Redis is down: the rest of the answer comes from the ledger. */
  private async live({ notificationId, subscriptionId }: DeliveryKey): Promise<AttemptState | undefined> {
    try {
      return await this.attemptStates.get(notificationId, subscriptionId);
    } catch (error) {
      this.logger.warn({ event: 'attempt-state.not-read', notificationId, subscriptionId, error });
      return undefined;
    }
  }

  private async find(key: DeliveryKey): Promise<KnownDelivery> {
    const delivery = await this.reader.find(key);
    if (delivery) return delivery;
    await refuseAway(this.postgres, key.notificationId);
    throw noSuchDelivery();
  }

  /** Whose change is committed. */
  private async findChanged(key: DeliveryKey): Promise<KnownDelivery> {
    const delivery = await readBack(() => this.reader.find(key));
    if (!delivery) throw new MaybeDoneProblem(new Error('The day of the delivery left while it was changed.'));
    return delivery;
  }

  /**
   * A worker would end it again without a call, and write over the reason for which it had ended, or hold it again. One
   * that has ended is sent again also where the subscription is paused: when that is resumed.
   */
  private async refuseInVain(key: DeliveryKey): Promise<void> {
    await this.catalogue.refresh(); // another process may have changed the subscription a moment ago
    const subscription = stateOfSubscription(this.subscriptions.find(key.subscriptionId));
    if (subscription === 'active') return;
    const state = (await stateOf(this.postgres, key))?.state;
    if (state === undefined || state === 'delivered') return; // the retry itself is refused, for that
    if (subscription === 'paused' && state !== 'waiting' && state !== 'held') return;
    throw new ConflictProblem(`subscription-${subscription}`, `The subscription is ${subscription}. Nothing was done.`);
  }
}

const noSuchDelivery = () => new NotFoundProblem('There is no such delivery.');

function noteAs(action: string, { notificationId, subscriptionId }: DeliveryKey): AlsoThen {
  const subject = `delivery/${notificationId}/${subscriptionId}`;
  return (query, before, after) => AuditLog.note(query, { action, subject, before, after });
}

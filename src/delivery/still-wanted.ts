import type { Admission } from '../endpoints/admission.service.js';
import type { Place } from '../endpoints/room.js';
import type { Lock } from '../idempotency/lock.js';
import type { Clock } from '../infra/clock.js';
import { whileNeitherAborted } from '../infra/while-neither-aborted.js';
import type { DeliveryGuarantee } from '../subscriptions/subscription.js';
import type { ListedSubscription, SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { Caller } from './authorized-call.js';
import { freshMs, type Loaded } from './chunk-loader.service.js';
import type { Decider } from './decider.service.js';
import type { DeliveryRecords } from './delivery-records.service.js';

/** A delivery that is to be sent, with its place. */
export interface Task {
  delivery: Loaded;
  subscription: ListedSubscription;
  place: Place;
  stopping: AbortSignal;
  /** When its subscription, and its expiry, were looked at. */
  since: number;
  /** Once it has one; of one that is sent under the lease of its process, that lease. */
  lock: Pick<Lock, 'isHeld'> | undefined;
}

/**
 * Whether a delivery that has its place may still be sent, after each wait for a server: meanwhile an operator may have
 * cancelled it or changed its subscription, it may have expired, and another process may have got it.
 */
export class StillWanted {
  constructor(
    private readonly clock: Clock,
    private readonly subscriptions: SubscriptionDirectory,
    private readonly decider: Decider,
    private readonly admission: Admission,
    private readonly records: DeliveryRecords,
  ) {}

  /**
   * After a wait for its text or the ledger's answer, for as long as Postgres is away. Where it has not, it counts as
   * looked at now.
   */
  hasChanged(task: Task): boolean {
    const now = this.clock.now();
    if (now - task.since <= freshMs) return false;
    task.since = now;
    return !this.isAsBefore(task);
  }

  /**
   * Its subscription is the same, it may still be called with this delivery, and no other process has had time to get
   * the lock, or the lease, that this one had.
   */
  isAsBefore({ delivery, subscription, place, lock }: Task): boolean {
    const known = this.subscriptions.find(delivery.subscriptionId);
    return (
      lock?.isHeld !== false &&
      known?.version === subscription.version &&
      !this.decider.endingOf(delivery, known) &&
      this.admission.isStillFor(place, delivery, known)
    );
  }

  /** It asks again after the wait for a token, which may take half the time of a call. */
  callerOf(task: Task, guarantee: DeliveryGuarantee): Caller {
    return {
      begun: () => this.admission.begin(task.place),
      isStillWanted: (tooLate) =>
        whileNeitherAborted(task.stopping, tooLate, (ended) => this.isStillInHand(task, guarantee, ended)),
    };
  }

  /** After its call, which an old address may have refused. A subscription that is deleted has not. */
  hasMoved({ id, callbackUrl }: ListedSubscription): boolean {
    const known = this.subscriptions.find(id);
    return known !== undefined && known.callbackUrl !== callbackUrl;
  }

  private async isStillInHand(task: Task, guarantee: DeliveryGuarantee, ended: AbortSignal): Promise<boolean> {
    const isInHand =
      guarantee === 'at-most-once'
        ? await this.records.isStillClaimed(task.delivery, ended)
        : await this.records.isStillQueued(task.delivery, ended);
    return isInHand && this.isAsBefore(task);
  }
}

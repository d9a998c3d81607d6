import type { Admission } from '../endpoints/admission.service.js';
import type { Place } from '../endpoints/room.js';
import type { HandedOut, HeldReason } from '../ledger/delivery.js';
import type { Outcome } from '../ledger/settle.service.js';
import type { ListedSubscription, SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { Decider } from './decider.service.js';

/** The fate of a delivery: it ends without a call, or is sent to its subscription if it has got a place. */
type Admitted =
  | { ending: Outcome }
  | { ending?: undefined; subscription: ListedSubscription; place: Place | HeldReason };

/** How a delivery comes to its place, or to its end without one. */
export class Entry {
  constructor(
    private readonly subscriptions: SubscriptionDirectory,
    private readonly decider: Decider,
    private readonly admission: Admission,
  ) {}

  /** Without a promise where it need not wait. */
  admit(delivery: HandedOut, isHandedOver: boolean): Admitted | Promise<Admitted> {
    const subscription = this.subscriptions.find(delivery.subscriptionId);
    if (!subscription) return { ending: { state: 'cancelled', attempt: null } };
    const ending = this.decider.endingOf(delivery, subscription);
    if (ending) {
      if (delivery.isProbe) this.admission.probeEnded(subscription);
      return { ending };
    }
    const place = this.admission.enter(delivery, subscription, isHandedOver);
    return place instanceof Promise
      ? this.afterWaiting(delivery, subscription, place, isHandedOver)
      : { subscription, place };
  }

  /** While it waited, its subscription may have been changed, paused or deleted, and the delivery may have expired. */
  private async afterWaiting(
    delivery: HandedOut,
    before: ListedSubscription,
    waiting: Promise<Place | HeldReason>,
    isHandedOver: boolean,
  ): Promise<Admitted> {
    const place = await waiting;
    if (typeof place === 'string') return { subscription: before, place };
    const subscription = this.subscriptions.find(delivery.subscriptionId);
    const mayUse =
      subscription &&
      !this.decider.endingOf(delivery, subscription) &&
      this.admission.isStillFor(place, delivery, subscription);
    if (mayUse) return { subscription, place };
    this.admission.giveBack(place);
    return this.admit(delivery, isHandedOver);
  }
}

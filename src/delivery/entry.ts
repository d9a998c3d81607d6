import type { Admission } from '../endpoints/admission.service.js';
import type { Place } from '../endpoints/room.js';
import type { HandedOut, HeldReason } from '../ledger/delivery.js';
import type { Outcome } from '../ledger/settle.service.js';
import type { ListedSubscription, SubscriptionDirectory } from '../subscriptions/subscription-directory.service.js';
import type { Decider } from './decider.service.js';

/** The fate of a delivery: it ends without a call, waits in the ledger, or is sent to its subscription. */
type Fate =
  | { kind: 'ends'; outcome: Outcome }
  | { kind: 'held'; reason: HeldReason }
  | { kind: 'placed'; subscription: ListedSubscription; place: Place };

/** How a delivery comes to its place, or to its end without one. */
export class Entry {
  constructor(
    private readonly subscriptions: SubscriptionDirectory,
    private readonly decider: Decider,
    private readonly admission: Admission,
  ) {}

  /** Without a promise where it need not wait. */
  admit(delivery: HandedOut, isHandedOver: boolean): Fate | Promise<Fate> {
    const subscription = this.subscriptions.find(delivery.subscriptionId);
    if (!subscription) return { kind: 'ends', outcome: { state: 'cancelled', attempt: null } };
    const outcome = this.decider.endingOf(delivery, subscription);
    if (outcome) {
      if (delivery.isProbe) this.admission.probeEnded(subscription);
      return { kind: 'ends', outcome };
    }
    const place = this.admission.enter(delivery, subscription, isHandedOver);
    if (place instanceof Promise) return this.afterWaiting(delivery, place, isHandedOver);
    return typeof place === 'string' ? { kind: 'held', reason: place } : { kind: 'placed', subscription, place };
  }

  /** While it waited, its subscription may have been changed, paused or deleted, and the delivery may have expired. */
  private async afterWaiting(
    delivery: HandedOut,
    waiting: Promise<Place | HeldReason>,
    isHandedOver: boolean,
  ): Promise<Fate> {
    const place = await waiting;
    if (typeof place === 'string') return { kind: 'held', reason: place };
    const subscription = this.subscriptions.find(delivery.subscriptionId);
    const mayUse =
      subscription &&
      !this.decider.endingOf(delivery, subscription) &&
      this.admission.isStillFor(place, delivery, subscription);
    if (mayUse) return { kind: 'placed', subscription, place };
    this.admission.giveBack(place);
    return this.admit(delivery, isHandedOver);
  }
}

import { Injectable } from '@nestjs/common';
import type { Delivery, HeldReason } from '../ledger/delivery.js';
import type { Subscription } from '../subscriptions/subscription.js';
import type { ListedSubscription } from '../subscriptions/subscription-directory.service.js';
import { OpenEndpoints } from './open-endpoints.service.js';

type Release = Pick<Delivery, 'isReleased' | 'releasedWith' | 'isProbe'>;

export type ToCall = Subscription & Pick<ListedSubscription, 'slowedWith'>;

const justAccepted: Release = { isReleased: false, isProbe: false };

/** Why a delivery may not be sent now, apart from its own schedule. */
@Injectable()
export class HoldRule {
  constructor(private readonly openEndpoints: OpenEndpoints) {}

  /** Of what is being accepted only that is held which is for a subscription that is paused or has a rate. */
  get isQuiet(): boolean {
    return this.openEndpoints.isQuiet;
  }

  /**
   * For a delivery that is being accepted. It is held by the statement that accepts it, and a dispatcher releases it.
   */
  onAcceptance(subscription: Subscription): HeldReason | undefined {
    return (
      this.beforeCall(subscription, justAccepted) ??
      (this.openEndpoints.hasBacklog(subscription.id) ? 'endpoint-busy' : undefined)
    );
  }

  /** For a delivery that is about to be sent. A probe goes: an endpoint in trouble is well again when it says so. */
  beforeCall(subscription: ToCall, release: Release): HeldReason | undefined {
    if (subscription.pausedAt) return 'paused';
    if (release.isProbe) return undefined;
    if (subscription.ratePerSecond !== null && !isPaced(subscription, release)) return 'rate';
    return this.openEndpoints.of(subscription) ? 'endpoint-parked' : undefined;
  }
}

/**
 * Released by the rate that there is, or a lower one. Up to two thousand may have been released before an operator set
 * it. A change of anything else does not count: a subscription that is changed again and again would get nothing.
 */
const isPaced = ({ slowedWith = 0 }: ToCall, { isReleased, releasedWith = Infinity }: Release) =>
  isReleased && releasedWith >= slowedWith;

import { Injectable } from '@nestjs/common';
import type { Delivery, HeldReason } from '../ledger/delivery.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { OpenEndpoints } from './open-endpoints.service.js';

type Release = Pick<Delivery, 'isReleased' | 'isProbe'>;

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
  beforeCall(subscription: Subscription, { isReleased, isProbe }: Release): HeldReason | undefined {
    if (subscription.pausedAt) return 'paused';
    if (isProbe) return undefined;
    if (subscription.ratePerSecond !== null && !isReleased) return 'rate';
    return this.openEndpoints.of(subscription) ? 'endpoint-parked' : undefined;
  }
}

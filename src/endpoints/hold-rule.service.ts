import { Injectable } from '@nestjs/common';
import type { HeldReason } from '../ledger/delivery.js';
import type { Subscription } from '../subscriptions/subscription.js';
import { OpenEndpoints } from './open-endpoints.service.js';

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
      this.beforeCall(subscription, false) ??
      (this.openEndpoints.hasBacklog(subscription.id) ? 'endpoint-busy' : undefined)
    );
  }

  /** For a delivery that is about to be sent. A released one goes: it may be a probe. */
  beforeCall(subscription: Subscription, isReleased: boolean): HeldReason | undefined {
    if (subscription.pausedAt) return 'paused';
    if (isReleased) return undefined;
    if (subscription.ratePerSecond !== null) return 'rate';
    return this.openEndpoints.of(subscription.callbackUrl) ? 'endpoint-parked' : undefined;
  }
}

import { Injectable, Logger } from '@nestjs/common';

/** What an operator may want to be told of, as it happens. `address`: of an endpoint, its origin or its callback URL. */
export type OperationalEvent =
  /** Its circuit breaker opened: its deliveries are held. `failures`: calls that failed one after the other. */
  | { event: 'endpoint.opened'; address: string; reason: string; failures: number }
  /** A call to it succeeded: what was held goes out again. */
  | { event: 'endpoint.closed'; address: string; openMs: number; by: 'probe' | 'operator' }
  /** Its receiver answered 410 Gone. */
  | { event: 'subscription.disabled'; subscriptionId: string }
  | { event: 'subscription.enabled'; subscriptionId: string }
  | { event: 'subscription.paused'; subscriptionId: string }
  | { event: 'subscription.resumed'; subscriptionId: string }
  /** A delivery ended without success and is kept as a dead letter. */
  | {
      event: 'delivery.dead';
      notificationId: string;
      subscriptionId: string;
      state: 'failed' | 'expired' | 'unknown';
      reason: string | null;
    };

const isGood: Record<OperationalEvent['event'], boolean> = {
  'endpoint.opened': false,
  'endpoint.closed': true,
  'subscription.disabled': false,
  'subscription.enabled': true,
  'subscription.paused': true,
  'subscription.resumed': true,
  'delivery.dead': false,
};

/** The one list of what operators are told of. Each is an event in the log, at `warn` where somebody may have to act. */
@Injectable()
export class OperationalEvents {
  private readonly logger = new Logger('Operations');

  report(event: OperationalEvent): void {
    if (isGood[event.event]) this.logger.log(event);
    else this.logger.warn(event);
  }
}

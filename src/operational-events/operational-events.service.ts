import { Injectable, Logger } from '@nestjs/common';
import { deadCounted } from './operational-events.counters.js';

/**
 * Events that an operator may want to be told of as they happen. `address`: of an endpoint, its origin or its callback
 * URL, with the TLS identity that it is called with.
 */
export type OperationalEvent =
  /** Its circuit breaker opened: its deliveries are held. `failures`: calls that failed one after the other. */
  | { event: 'endpoint.opened'; address: string; reason: string; failures: number }
  /** A call to it succeeded: what was held goes out again. */
  | { event: 'endpoint.closed'; address: string; openMs: number; by: 'probe' | 'operator' | 'unused' }
  /** Its receiver answered 410 Gone. */
  | { event: 'subscription.disabled'; subscriptionId: string }
  | { event: 'subscription.enabled'; subscriptionId: string }
  | { event: 'subscription.paused'; subscriptionId: string }
  | { event: 'subscription.resumed'; subscriptionId: string }
  /**
   * Deliveries ended without success and are kept as dead letters: `count` of them, which are written together. An id
   * is null where they have several. `reason`: of the first of them.
   */
  | {
      event: 'delivery.dead';
      notificationId: string | null;
      subscriptionId: string | null;
      state: DeadState;
      reason: string | null;
      count: number;
    };

export type DeadState = 'failed' | 'expired' | 'unknown';

export interface DeadLetter {
  notificationId: string;
  subscriptionId: string;
  state: DeadState;
  reason: string | null;
}

type Listener = (event: OperationalEvent, dead: readonly DeadLetter[]) => void;

/** Dead letters of one subscription, in the same state. */
export function asOne(dead: readonly DeadLetter[]): OperationalEvent {
  const [first, ...others] = dead;
  const notificationId = others.length === 0 ? first!.notificationId : null;
  return { event: 'delivery.dead', ...first!, notificationId, count: dead.length };
}

const isGood: Record<OperationalEvent['event'], boolean> = {
  'endpoint.opened': false,
  'endpoint.closed': true,
  'subscription.disabled': false,
  'subscription.enabled': true,
  'subscription.paused': true,
  'subscription.resumed': true,
  'delivery.dead': false,
};

/**
 * The one list of what operators are told of. Each is an event in the log, at `warn` where somebody may have to act.
 */
@Injectable()
export class OperationalEvents {
  private readonly logger = new Logger('Operations');
  private readonly listeners: Listener[] = [];

  /** Has `listener` told of each event too. It must not throw. */
  onReport(listener: Listener): void {
    this.listeners.push(listener);
  }

  /** @param dead of dead letters that are reported as one, where each is known */
  report(event: OperationalEvent, dead: readonly DeadLetter[] = []): void {
    if (event.event === 'delivery.dead') deadCounted.inc({ state: event.state }, event.count);
    for (const listener of this.listeners) listener(event, dead);
    if (isGood[event.event]) this.logger.log(event);
    else this.logger.warn(event);
  }

  /**
   * Reports deliveries that one statement has ended without success: one event for all of a subscription in the same
   * state, because a million may end together.
   */
  reportDead(dead: readonly DeadLetter[]): void {
    const groups = new Map<string, DeadLetter[]>();
    for (const each of dead) {
      const key = `${each.subscriptionId} ${each.state}`;
      const group = groups.get(key);
      if (group) group.push(each);
      else groups.set(key, [each]);
    }
    for (const group of groups.values()) this.report(asOne(group), group);
  }
}

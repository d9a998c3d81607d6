import type { DeliveryKey } from '../ledger/delivery.js';

/** The live state of a delivery that is being sent, or waits for its next attempt. */
export interface AttemptState {
  /** Counts from 1. */
  attempt: number;
  status: 'sending' | 'waiting';
  lastStatus: number | null;
  lastError: string | null;
  /** When its call was begun: RFC 3339, UTC; null while it waits. */
  startedAt: string | null;
  /** RFC 3339, UTC; null while it is being sent. */
  nextAttemptAt: string | null;
}

/**
 * The live view of deliveries that failed at least once, or whose first call takes long. The ledger has it for good;
 * this may be lost at any time.
 */
export abstract class AttemptStates {
  /** Never waits and never throws: what cannot be remembered is still in the ledger. */
  abstract put(key: DeliveryKey, state: AttemptState, keepMs: number): void;
  /** The delivery is over. */
  abstract remove(key: DeliveryKey): void;
  abstract get(notificationId: string, subscriptionId: string): Promise<AttemptState | undefined>;
}

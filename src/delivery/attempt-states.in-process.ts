import { LRUCache } from 'lru-cache';
import type { DeliveryKey } from '../ledger/delivery.js';
import { AttemptStates, type AttemptState } from './attempt-states.js';

/** Where there is no Redis: what this process itself knows. Of another process's deliveries the ledger tells. */
export class InProcessAttemptStates extends AttemptStates {
  private readonly states = new LRUCache<string, AttemptState>({ max: 10_000 });

  put(key: DeliveryKey, state: AttemptState, keepMs: number): void {
    this.states.set(nameOf(key), state, { ttl: keepMs });
  }

  remove(key: DeliveryKey): void {
    this.states.delete(nameOf(key));
  }

  get(notificationId: string, subscriptionId: string): Promise<AttemptState | undefined> {
    return Promise.resolve(this.states.get(nameOf({ notificationId, subscriptionId })));
  }
}

function nameOf({ notificationId, subscriptionId }: DeliveryKey): string {
  return `${notificationId}:${subscriptionId}`;
}

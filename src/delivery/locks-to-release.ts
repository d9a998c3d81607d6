import type { Delivery } from '../ledger/delivery.js';
import { keyIdOf } from './delivery-keys.js';

/**
 * Deliveries that are to be repeated, and whose lock this process still has: it releases that when the ledger has their
 * outcome, and from then on another message of them may come, to this very process.
 */
export class LocksToRelease {
  private readonly expected = new Map<string, { generation: number; released: Promise<void> }>();

  /**
   * To be called before the ledger has the outcome: no later message of the delivery has come yet.
   * @returns to be called when its lock was released
   */
  add(delivery: Delivery): () => void {
    const key = keyIdOf(delivery);
    let onReleased = () => {};
    const released = new Promise<void>((resolve) => (onReleased = resolve));
    const expected = { generation: delivery.generation, released };
    this.expected.set(key, expected);
    return () => {
      if (this.expected.get(key) === expected) this.expected.delete(key);
      onReleased();
    };
  }

  /**
   * undefined: there is none to wait for. Nor is there for a message of the same generation: it is not to be sent
   * again.
   */
  beforeSending(delivery: Delivery): Promise<void> | undefined {
    const expected = this.expected.get(keyIdOf(delivery));
    return expected && expected.generation < delivery.generation ? expected.released : undefined;
  }
}

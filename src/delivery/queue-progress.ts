/** What a worker has taken from one lane of the queue, by the time at which the ledger handed it out. */
export class QueueProgress {
  private newest: number | undefined;
  private readonly inHand = new Map<number, number>();

  take(queuedAt: number): void {
    this.newest = Math.max(this.newest ?? queuedAt, queuedAt);
    this.inHand.set(queuedAt, (this.inHand.get(queuedAt) ?? 0) + 1);
  }

  /** The queue may forget it. */
  finish(queuedAt: number): void {
    const left = this.inHand.get(queuedAt)! - 1;
    if (left === 0) this.inHand.delete(queuedAt);
    else this.inHand.set(queuedAt, left);
  }

  /** Undefined before anything was taken. */
  report(): { newestTaken: number; oldestInHand: number | null } | undefined {
    if (this.newest === undefined) return undefined;
    // At most as many as chunks are prefetched.
    const oldestInHand = this.inHand.size === 0 ? null : Math.min(...this.inHand.keys());
    return { newestTaken: this.newest, oldestInHand };
  }
}

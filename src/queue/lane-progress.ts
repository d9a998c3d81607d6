/** The chunks that a worker has taken from one lane of the queue, by the time at which the ledger handed them out. */
export class LaneProgress {
  private newest: number | undefined;
  private readonly unacknowledged = new Map<number, number>();

  take(queuedAt: number): void {
    this.newest = Math.max(this.newest ?? queuedAt, queuedAt);
    this.unacknowledged.set(queuedAt, (this.unacknowledged.get(queuedAt) ?? 0) + 1);
  }

  /** One of the chunks handed out at that time is done. */
  finish(queuedAt: number): void {
    const left = this.unacknowledged.get(queuedAt)! - 1;
    if (left === 0) this.unacknowledged.delete(queuedAt);
    else this.unacknowledged.set(queuedAt, left);
  }

  /**
   * All that is not done has gone back to the queue. It is not known then how far this process is beyond the oldest of
   * that: to say more would let a dispatcher take the others for lost before anybody has taken them again.
   */
  giveBackAll(): void {
    if (this.unacknowledged.size === 0) return;
    this.newest = Math.min(...this.unacknowledged.keys()) - 1;
    this.unacknowledged.clear();
  }

  /** Undefined before anything was taken. */
  report(): { newestTaken: number; oldestUnacknowledged: number | null } | undefined {
    if (this.newest === undefined) return undefined;
    // At most as many as chunks are prefetched.
    const oldestUnacknowledged = this.unacknowledged.size === 0 ? null : Math.min(...this.unacknowledged.keys());
    return { newestTaken: this.newest, oldestUnacknowledged };
  }
}

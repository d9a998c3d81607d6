const bucketMs = 1000;

/**
 * How many calls may be open at once: few at first, one more with each success, half after trouble. It widens only as
 * far as it is used, twice the most calls that were open in the last seconds: an endpoint that needs three calls at a
 * time and then hangs must not find room for a hundred, because it was quick for an hour. One that has calls wait for
 * each other gets one more with each round of answers, as it does near the width at which they were last not answered
 * in time (as in RFC 5681).
 */
export class Window {
  open = 0;
  limit: number;
  most: number;
  /** Most calls open at once in the present second, and in the one before. */
  private peak = 0;
  private peakBefore = 0;
  private bucketStart = 0;
  /** So many were open when one was not answered in time that had to wait for others; 0: none was. */
  private tooMany = 0;
  private tooManySince = -Infinity;
  /** Since it was last widened by a round. */
  private answered = 0;

  constructor(
    private readonly first: number,
    most: number,
  ) {
    this.most = most;
    this.limit = Math.min(first, most);
  }

  /** Calls that are open go on, and count. Where it was as wide as it might be, it may have as many as at first. */
  changeMost(most: number): void {
    const wasFull = this.limit === this.most;
    this.most = most;
    if (wasFull) this.widenToFirst();
    this.limit = Math.min(this.limit, most);
  }

  get hasRoom(): boolean {
    return this.open < this.limit;
  }

  enter(now: number): void {
    this.advance(now);
    this.open++;
    if (this.open > this.peak) this.peak = this.open;
  }

  /** Before it is known how the call went: the calls that were open until now say how far the window was used. */
  leave(now: number): void {
    this.advance(now);
    this.open--;
  }

  widen(isCongested = false): void {
    if (this.limit >= this.most || this.limit >= 2 * Math.max(this.peak, this.peakBefore)) return;
    const isNearTooMany = this.limit >= this.tooMany / 2 && this.limit < this.tooMany;
    if ((isCongested || isNearTooMany) && ++this.answered < this.limit) return;
    this.answered = 0;
    this.limit++;
  }

  /**
   * A call that began then, and has left, was not answered, by an endpoint that has calls wait. Others that began
   * before this tell nothing new.
   */
  wasTooWide(begunAt: number, now: number): void {
    if (begunAt < this.tooManySince) return;
    this.tooMany = this.open + 1;
    this.tooManySince = now;
  }

  halve(): void {
    this.limit = Math.max(1, Math.floor(this.limit / 2));
  }

  /** It was narrowed below its first limit by no fault of its own. */
  widenToFirst(): void {
    this.limit = Math.max(this.limit, Math.min(this.first, this.most));
  }

  startSlowly(): void {
    this.limit = Math.min(this.first, this.most);
  }

  private advance(now: number): void {
    const elapsedMs = now - this.bucketStart;
    if (elapsedMs < bucketMs) return;
    // Where nothing came or went for longer, as many were open all the time as are now.
    this.peakBefore = elapsedMs < 2 * bucketMs ? this.peak : this.open;
    this.peak = this.open;
    this.bucketStart = now;
    // One that was halved below what it had at first has to earn that again.
    const used = Math.max(this.first, 2 * Math.max(this.peak, this.peakBefore));
    this.limit = Math.min(this.limit, used);
  }
}

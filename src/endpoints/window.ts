const bucketMs = 1000;

/**
 * How many calls may be open at once: few at first, one more with each success, half after trouble. It widens only as
 * far as it is used, twice the most calls that were open in the last seconds: an endpoint that needs three calls at a
 * time and then hangs must not find room for a hundred, because it was quick for an hour.
 */
export class Window {
  open = 0;
  limit: number;
  /** Most calls open at once in the present second, and in the one before. */
  private peak = 0;
  private peakBefore = 0;
  private bucketStart = 0;

  constructor(
    private readonly first: number,
    private readonly most: number,
  ) {
    this.limit = Math.min(first, most);
  }

  get hasRoom(): boolean {
    return this.open < this.limit;
  }

  enter(now: number): void {
    if (now - this.bucketStart >= bucketMs) this.nextBucket(now);
    this.open++;
    if (this.open > this.peak) this.peak = this.open;
  }

  leave(): void {
    this.open--;
  }

  widen(): void {
    if (this.limit < this.most && this.limit < 2 * Math.max(this.peak, this.peakBefore)) this.limit++;
  }

  halve(): void {
    this.limit = Math.max(1, Math.floor(this.limit / 2));
  }

  startSlowly(): void {
    this.limit = Math.min(this.first, this.most);
  }

  private nextBucket(now: number): void {
    this.peakBefore = now - this.bucketStart < 2 * bucketMs ? this.peak : 0;
    this.peak = this.open;
    this.bucketStart = now;
    // One that was halved below what it had at first has to earn that again.
    const used = Math.max(this.first, 2 * Math.max(this.peak, this.peakBefore));
    this.limit = Math.min(this.limit, used);
  }
}

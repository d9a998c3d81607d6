/** Answers of which the shortest is compared: with few, one that had luck hides that the others waited. */
const together = 8;
/** Shorter ones are no sign of a queue that grows dangerous, whatever they were before. */
const shortestTellingMs = 2000;
/** An endpoint may have become slower for good: what it took is forgotten after this long, or twice this long. */
const keptMs = 10 * 60_000;

/**
 * Whether an endpoint serves only some of its calls at a time and has the others wait, so that more open calls only take longer, until they are not
 * answered in time: even the shortest of some answers then takes twice as long as one did before. A receiver that is always slow, or slow
 * now and then, is not congested. The idea is that of HyStart (RFC 9406), for calls in place of segments (docs/decisions/0080).
 */
export class Congestion {
  isCongested = false;
  private count = 0;
  /** Of those that are counted. */
  private shortestMs = Infinity;
  /** Of all in this period, and in the one before. */
  private leastMs = Infinity;
  private leastBeforeMs = Infinity;
  private periodStart = -Infinity;

  /** An answer came, after so long. */
  took(durationMs: number, now: number): void {
    if (durationMs < this.shortestMs) this.shortestMs = durationMs;
    if (++this.count < together) return;
    if (now - this.periodStart >= keptMs) {
      this.leastBeforeMs = now - this.periodStart < 2 * keptMs ? this.leastMs : Infinity;
      this.leastMs = Infinity;
      this.periodStart = now;
    }
    const leastMs = Math.min(this.leastMs, this.leastBeforeMs);
    this.isCongested = this.shortestMs > shortestTellingMs && this.shortestMs > 2 * leastMs;
    this.leastMs = Math.min(this.leastMs, this.shortestMs);
    this.shortestMs = Infinity;
    this.count = 0;
  }
}

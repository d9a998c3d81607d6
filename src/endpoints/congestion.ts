/** Answers in a row that all have to be long: of fewer, none may be quick by chance, where none waits. */
const together = 8;
/** Shorter ones are no sign of a queue that grows dangerous, whatever they were before. */
const shortestTellingMs = 2000;
/** A call that waited for one other takes twice as long, but for what it is on the way. */
const longFactor = 1.9;
/** An endpoint may have become slower for good: what it took is forgotten after this long, or twice this long. */
const keptMs = 10 * 60_000;

/**
 * Whether an endpoint serves only some of its calls at a time and has the others wait, so that more open calls only
 * take longer, until they are not answered in time: even the shortest of the latest answers then takes about twice as
 * long as one did before. A receiver that is always slow, or slow now and then, is not congested. The idea is that of
 * HyStart (RFC 9406), for calls in place of segments (docs/decisions/0080).
 */
export class Congestion {
  /** Answers in a row, up to the latest, that were long. */
  private long = 0;
  /** The time of the shortest one in this period, and in the one before. */
  private leastMs = Infinity;
  private leastBeforeMs = Infinity;
  private periodStart = -Infinity;

  get isCongested(): boolean {
    return this.long >= together;
  }

  /** For longer than by chance, as it may be at any call that an endpoint with a long tail does not answer in time. */
  get isLasting(): boolean {
    return this.long >= 2 * together;
  }

  /** An answer came, after so long. */
  took(durationMs: number, now: number): void {
    if (now - this.periodStart >= keptMs) {
      this.leastBeforeMs = now - this.periodStart < 2 * keptMs ? this.leastMs : Infinity;
      this.leastMs = Infinity;
      this.periodStart = now;
    }
    const leastMs = Math.min(this.leastMs, this.leastBeforeMs);
    const isLong = durationMs > shortestTellingMs && durationMs > longFactor * leastMs;
    this.long = isLong ? this.long + 1 : 0;
    this.leastMs = Math.min(this.leastMs, durationMs);
  }
}

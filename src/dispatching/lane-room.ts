/**
 * Of a sweep: so many are released without asking how much the lane has. Of subscriptions whose windows together are no
 * wider, no more can be under way.
 */
const unasked = 512;
/** One that lasts longer is taken for two: a subscription is looked at again after that time. */
const sweepMs = 250;

/**
 * Shares out what the lane of released deliveries has room for among the subscriptions that have some held: each may
 * have a window of thousands, and a retry, or a probe of another endpoint, would stand in line behind all of them. The
 * rest stays in the ledger. Where many are looked at, they are looked at some at a time, one after the other: a sweep,
 * of which the first get no more than those that follow.
 */
export class LaneRoom {
  private begunAt = -Infinity;
  private hasEnded = true;
  private wantedBefore = 0;
  private wanted = 0;
  private room: number | undefined;

  /**
   * @param measure how many deliveries the lane has room for
   * @param now milliseconds, monotonic
   */
  constructor(
    private readonly measure: () => Promise<number>,
    private readonly now: () => number,
  ) {}

  /**
   * @param wants deliveries that may be released for each of those that are looked at together
   * @param areMore that are due, probably: they are looked at next
   * @returns the most that each of them gets; none gets more than it wants
   */
  async levelFor(wants: readonly number[], areMore: boolean): Promise<number> {
    if (this.hasEnded || this.now() - this.begunAt >= sweepMs) {
      [this.wantedBefore, this.wanted] = [this.wanted, 0];
      this.room = undefined;
      this.begunAt = this.now();
    }
    this.hasEnded = !areMore;
    const wanted = sum(wants);
    this.wanted += wanted;
    if (this.wanted <= unasked) return Infinity;
    this.room ??= await this.measure();
    const ofAll = Math.max(areMore ? this.wantedBefore : 0, this.wanted);
    return levelOf(wants, (this.room * wanted) / ofAll);
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);

/** Those that want little get it, and the others as much as each other: one at least, unless there is no room. */
export function levelOf(wants: readonly number[], room: number): number {
  let left = Math.max(0, room);
  const ascending = wants.toSorted((one, other) => one - other);
  for (const [nr, want] of ascending.entries()) {
    const each = left / (wants.length - nr);
    if (want > each) return Math.ceil(each);
    left -= want;
  }
  return Infinity;
}

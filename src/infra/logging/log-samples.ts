/**
 * Picks, of many events of a kind, the first in a while: for a log that anyone can cause lines in, and could fill a
 * disk with. There must be few kinds.
 */
export class LogSamples {
  private readonly kinds = new Map<string, { pickedAt: number; since: number }>();

  /** @param now milliseconds, of a clock that only rises */
  constructor(
    private readonly everyMs: number,
    private readonly now: () => number,
  ) {}

  /**
   * @returns how many there were of this kind, this one included, since the last that was picked; undefined: do not
   * pick it
   */
  pick(kind: string): number | undefined {
    const now = this.now();
    const seen = this.kinds.get(kind);
    if (seen && now - seen.pickedAt < this.everyMs) {
      seen.since++;
      return undefined;
    }
    this.kinds.set(kind, { pickedAt: now, since: 0 });
    return (seen?.since ?? 0) + 1;
  }
}

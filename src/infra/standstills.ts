/** The part of Node's `IntervalHistogram` that is looked at, in nanoseconds. */
interface Lag {
  readonly max: number;
  reset(): void;
}

/** Its owner ends a slot each time so many milliseconds have passed, whether anybody reads or not. */
export const slotMs = 5000;
const slots = 12;

/** The longest standstill of the last minute: by slot, so that those who read often make it no shorter. */
export class Standstills {
  private readonly bySlot = new Map<number, number>();

  /** @param now as `performance.now()` */
  constructor(
    private readonly lag: Lag,
    private readonly now: () => number,
  ) {}

  /** In seconds. */
  longest(): number {
    this.look();
    return Math.max(...this.bySlot.values());
  }

  /**
   * Not as part of a read: nobody may read for an hour, and to begin anew loses the standstill that is going on at that
   * moment.
   */
  endSlot(): void {
    this.look();
    this.lag.reset();
  }

  private look(): void {
    const slot = Math.floor(this.now() / slotMs);
    this.bySlot.set(slot, Math.max(this.bySlot.get(slot) ?? 0, this.lag.max / 1e9));
    for (const other of this.bySlot.keys()) if (other <= slot - slots || other > slot) this.bySlot.delete(other);
  }
}

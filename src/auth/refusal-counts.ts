import { LRUCache } from 'lru-cache';

/** Of how many keys the refusals are counted. Beyond it, those that have been quiet longest are forgotten. */
const mostKeys = 20_000;
/** Into how many steps the limit is divided; a process tells its count to the others at each. */
const steps = 10;

const minuteMs = 60_000;

interface Count {
  /** Known refusals: of this process, and what the others had told when this one told its own. */
  total: number;
  /** Refusals of this process that the others have not been told of. */
  untold: number;
}

/** Adds refusals to what all processes have counted under a key in a minute. @returns the sum */
export type Share = (key: string, minute: number, count: number) => Promise<number>;

/**
 * Counts refusals by key, in minutes of the clock: all that is counted ends with the minute, for every process at once.
 * Of the others a process learns when it tells its own count, at each tenth of the limit, so that to count costs
 * nothing but that, and no request waits for it; all together may exceed the limit by a tenth for each process.
 */
export class RefusalCounts {
  private minute = 0;
  private readonly counts = new LRUCache<string, Count>({ max: mostKeys });
  private readonly step: number;

  /**
   * @param limit of a key in a minute
   * @param now milliseconds since 1970
   * @param share not given: this process counts alone
   */
  constructor(
    private readonly limit: number,
    private readonly now: () => number,
    private readonly share?: Share,
  ) {
    this.step = Math.ceil(limit / steps);
  }

  /** Whether nothing was refused lately, which spares most requests the making of a key. */
  get isQuiet(): boolean {
    return this.counts.size === 0;
  }

  /** Whether the key has used up its refusals of this minute. */
  isUsedUp(key: string): boolean {
    this.beginMinute();
    return this.hasReachedLimit(key);
  }

  /**
   * Counts one refusal under each key. @returns whether one of them had used up its refusals before: then under none
   */
  add(keys: readonly string[]): boolean {
    this.beginMinute();
    if (keys.some((key) => this.hasReachedLimit(key))) return true;
    for (const key of keys) this.addOne(key);
    return false;
  }

  /** Whole seconds, at least one, to the end of this minute. */
  get secondsLeft(): number {
    return Math.ceil((minuteMs - (this.now() % minuteMs)) / 1000);
  }

  private hasReachedLimit(key: string): boolean {
    return (this.counts.get(key)?.total ?? 0) >= this.limit;
  }

  private addOne(key: string): void {
    const count = this.counts.get(key) ?? { total: 0, untold: 0 };
    count.total++;
    count.untold++;
    this.counts.set(key, count);
    if (this.share && count.untold >= this.step) this.tell(this.share, key, count);
  }

  private tell(share: Share, key: string, count: Count): void {
    const told = count.untold;
    count.untold = 0;
    share(key, this.minute, told).then(
      (sum) => (count.total = Math.max(count.total, sum + count.untold)),
      // Each process has its own count then, which still limits. The connection to Redis logs that it is gone.
      () => (count.untold += told),
    );
  }

  private beginMinute(): void {
    const minute = Math.floor(this.now() / minuteMs);
    if (minute === this.minute) return;
    this.minute = minute;
    this.counts.clear();
  }
}

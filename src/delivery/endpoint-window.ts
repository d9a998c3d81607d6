/*
 * How many calls one endpoint may have open. Slow start, so that an unknown or dead endpoint can take only a few places
 * of those everybody shares; what finds no room soon goes back to the ledger (docs/decisions/0010). An endpoint is judged
 * by its HTTP behaviour alone: waits for locks, Postgres or Redis happen outside.
 */
const firstLimit = 8;
/** Waiting for room, per place: a burst to a quick endpoint is through before anyone gives up. */
const waitersPerPlace = 16;
/** After this time whoever waits goes back to the ledger, unless the endpoint is about to get to it. */
const patienceMs = 250;
/** What an endpoint completed in this time it will complete again; who stands that near in line waits on. */
const paceMs = 1000;
/** A held delivery is looked at again at least this often, so that a recovered endpoint is not kept waiting. */
const longestHoldMs = 60_000;
const shortestHoldMs = 250;

export class EndpointWindow {
  private limit = firstLimit;
  private open = 0;
  private readonly waiters: ((entered: boolean) => void)[] = [];
  /** Running mean of a call's duration. */
  private meanMs = 100;
  /** Until when what was held will keep the endpoint busy, by its measured speed. */
  private bookedUntil = 0;
  /** Calls that ended well since `pageBegan`, and in the second before. */
  private completed = 0;
  private completedBefore = 0;
  private pageBegan = 0;

  constructor(
    private readonly maxLimit: number,
    private readonly now: () => number,
  ) {}

  get isIdle(): boolean {
    return this.open === 0 && this.waiters.length === 0 && this.bookedUntil < this.now();
  }

  /** @returns false if there was no room in good time; a true must be followed by one `leave` */
  enter(): boolean | Promise<boolean> {
    if (this.open < this.limit) {
      this.open++;
      return true;
    }
    if (this.waiters.length >= this.limit * waitersPerPlace) return false;
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout;
      const waiter = (entered: boolean) => {
        clearTimeout(timer);
        resolve(entered);
      };
      const consider = () => {
        const ahead = this.waiters.indexOf(waiter);
        if (ahead < this.completedLately()) return void (timer = setTimeout(consider, patienceMs));
        this.waiters.splice(ahead, 1);
        resolve(false);
      };
      timer = setTimeout(consider, patienceMs);
      this.waiters.push(waiter);
    });
  }

  /**
   * @param verdict what the call says of the endpoint: unhealthy is a timeout, no answer, 429 or 5xx; none means that there
   * was no call, or that we ended it
   */
  leave(verdict: 'healthy' | 'unhealthy' | 'none', durationMs: number): void {
    this.open--;
    if (verdict === 'healthy') this.limit = Math.min(this.maxLimit, this.limit + 1);
    if (verdict === 'unhealthy') this.limit = Math.max(1, Math.floor(this.limit / 2));
    if (verdict !== 'none') this.meanMs += (durationMs - this.meanMs) / 16;
    if (verdict === 'healthy') {
      this.turnPage();
      this.completed++;
    }
    while (this.open < this.limit && this.waiters.length > 0) {
      this.open++;
      this.waiters.shift()!(true);
    }
  }

  /** How many calls ended well within a second, of late: a receiver that hangs completes nothing, however fast it was. */
  private completedLately(): number {
    this.turnPage();
    return Math.max(this.completed, this.completedBefore);
  }

  private turnPage(): void {
    const ageMs = this.now() - this.pageBegan;
    if (ageMs < paceMs) return;
    this.completedBefore = ageMs < 2 * paceMs ? this.completed : 0;
    this.completed = 0;
    this.pageBegan += Math.floor(ageMs / paceMs) * paceMs;
  }

  /** Milliseconds until a delivery that found no room should come again: spread out at the speed the endpoint has shown. */
  holdMs(): number {
    const now = this.now();
    const perCallMs = this.meanMs / this.limit;
    this.bookedUntil = Math.max(this.bookedUntil, now) + perCallMs;
    return Math.min(longestHoldMs, Math.max(shortestHoldMs, this.bookedUntil - now));
  }
}

/** The windows of the endpoints in use, by callback URL. Those long unused are forgotten. */
export class EndpointWindows {
  private readonly windows = new Map<string, EndpointWindow>();
  private sweepAt = 1000;

  constructor(
    private readonly maxLimit: number,
    private readonly now: () => number,
  ) {}

  of(url: string): EndpointWindow {
    let window = this.windows.get(url);
    if (!window) {
      window = new EndpointWindow(this.maxLimit, this.now);
      this.windows.set(url, window);
      if (this.windows.size >= this.sweepAt) this.sweep();
    }
    return window;
  }

  /** An idle endpoint starts slowly again: nobody knows what became of it meanwhile. */
  private sweep(): void {
    for (const [url, window] of this.windows) if (window.isIdle) this.windows.delete(url);
    this.sweepAt = Math.max(1000, this.windows.size * 2);
  }
}

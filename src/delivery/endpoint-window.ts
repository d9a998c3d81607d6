import type { Outcome } from '../ledger/settle.service.js';
import type { WebhookResponse } from './webhook-client.js';

/*
 * How many calls one endpoint may have open. Slow start, so that an unknown or dead endpoint can have only a few of the calls
 * that all share; a delivery that finds no room soon goes back to the ledger (docs/decisions/0010). An endpoint is judged by
 * its HTTP behaviour alone: waits for locks, Postgres or Redis happen outside.
 */
const firstLimit = 8;
/** Waiting for room, for each call that may be open: a burst to a quick endpoint is through before anything gives up. */
const waitersPerCall = 16;
/** After this time a delivery gives up waiting, unless the endpoint is about to get to it. */
const patienceMs = 250;
/** An endpoint will complete as many calls again as it completed in this time; a delivery that near in line waits on. */
const bucketMs = 1000;
/** A held delivery is looked at again at least this often, so that a recovered endpoint is not kept waiting. */
const longestHoldMs = 60_000;
const shortestHoldMs = 250;

export class EndpointWindow {
  private limit = firstLimit;
  private open = 0;
  private readonly waiters: (() => void)[] = [];
  /** Running mean of a call's duration. */
  private meanMs = 100;
  /** Until when what was held will keep the endpoint busy, by its measured speed. */
  private bookedUntil = 0;
  /** Calls that ended well in the present bucket of a second, and in the one before. */
  private completed = 0;
  private completedBefore = 0;
  private bucketStart = 0;

  constructor(
    private readonly maxLimit: number,
    private readonly now: () => number,
  ) {}

  get isIdle(): boolean {
    return this.open === 0 && this.waiters.length === 0 && this.bookedUntil < this.now();
  }

  /**
   * Room for one call; `leave` gives it back.
   * @returns what becomes of the delivery when there is no room in good time; undefined when there is
   */
  enter(): Outcome | undefined | Promise<Outcome | undefined> {
    if (this.open < this.limit) {
      this.open++;
      return undefined;
    }
    if (this.waiters.length >= this.limit * waitersPerCall) return this.hold();
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout;
      const waiter = () => {
        clearTimeout(timer);
        resolve(undefined);
      };
      const consider = () => {
        const ahead = this.waiters.indexOf(waiter);
        if (ahead < this.completedLately()) return void (timer = setTimeout(consider, patienceMs));
        this.waiters.splice(ahead, 1);
        resolve(this.hold());
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
      this.advanceBucket();
      this.completed++;
    }
    while (this.open < this.limit && this.waiters.length > 0) {
      this.open++;
      this.waiters.shift()!();
    }
  }

  /** Calls that ended well within a second, of late: a receiver that hangs completes nothing, however fast it was. */
  private completedLately(): number {
    this.advanceBucket();
    return Math.max(this.completed, this.completedBefore);
  }

  private advanceBucket(): void {
    const ageMs = this.now() - this.bucketStart;
    if (ageMs < bucketMs) return;
    this.completedBefore = ageMs < 2 * bucketMs ? this.completed : 0;
    this.completed = 0;
    this.bucketStart += Math.floor(ageMs / bucketMs) * bucketMs;
  }

  /** A delivery that found no room comes again when the endpoint, at the speed it has shown, will have got to it. */
  private hold(): Outcome {
    const now = this.now();
    const perCallMs = this.meanMs / this.limit;
    this.bookedUntil = Math.max(this.bookedUntil, now) + perCallMs;
    const delayMs = Math.min(longestHoldMs, Math.max(shortestHoldMs, this.bookedUntil - now));
    return { state: 'held', attempt: null, delayMs };
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

  /** An idle endpoint starts slowly again: it may have changed meanwhile. */
  private sweep(): void {
    for (const [url, window] of this.windows) if (window.isIdle) this.windows.delete(url);
    this.sweepAt = Math.max(1000, this.windows.size * 2);
  }
}

/** An endpoint that answers is well, unless it asks for less (429) or is in trouble itself (5xx). */
export function verdictOn(response: WebhookResponse): 'healthy' | 'unhealthy' | 'none' {
  if (response.kind === 'abandoned') return 'none';
  return response.kind === 'answered' && response.status < 500 && response.status !== 429 ? 'healthy' : 'unhealthy';
}

import { setMaxListeners } from 'node:events';
import { RunningTime } from './running-time.js';

/** Often enough for running time. */
const tickMs = 50;
/** The other side, kept waiting for longer, may have given this process up. */
const longMs = 1000;

/**
 * The time of a call to somebody else, which is not blamed for the time that this process stood still (`RunningTime`).
 * To be ended with the call.
 */
export class CallTime {
  private readonly time: RunningTime;
  private readonly limits = new Set<{ endsAt: number; reached: AbortController }>();
  private readonly ticking = setInterval(() => this.tick(), tickMs).unref();
  private readonly stop = (): void => {
    for (const { reached } of this.limits) reached.abort(this.stopping?.reason);
    this.limits.clear();
  };

  /**
   * @param stopping ends the call at once. It may live as long as the process: `AbortSignal.any` would leave something
   *   of each call in it (nodejs/node#55351).
   * @param clock milliseconds, monotonic
   */
  constructor(
    private readonly stopping?: AbortSignal,
    clock: () => number = () => performance.now(),
  ) {
    this.time = new RunningTime(clock);
    if (!stopping) return;
    setMaxListeners(0, stopping); // one of each call that is open
    stopping.addEventListener('abort', this.stop);
  }

  /**
   * Is aborted with a `TimeoutError`, as `AbortSignal.timeout` is, when this process has run for that long; with the
   * reason of `stopping`, where that is.
   */
  within(ms: number): AbortSignal {
    const reached = new AbortController();
    this.limits.add({ endsAt: this.time.now() + ms, reached });
    if (this.stopping?.aborted) this.stop();
    return reached.signal;
  }

  /** This process stood still for so long that what failed may have failed for it. */
  get hasStoodStill(): boolean {
    this.time.now();
    return this.time.lostMs >= longMs;
  }

  /** No limit is reached any more. */
  end(): void {
    clearInterval(this.ticking);
    this.stopping?.removeEventListener('abort', this.stop);
    this.limits.clear();
  }

  private tick(): void {
    const now = this.time.now();
    // Timers come before the sockets: what lies in these is read first.
    if ([...this.limits].some(({ endsAt }) => now >= endsAt)) setImmediate(() => this.endOverdue(now));
  }

  private endOverdue(now: number): void {
    for (const limit of this.limits) {
      if (now < limit.endsAt) continue;
      this.limits.delete(limit);
      limit.reached.abort(new DOMException('The time of the call is over.', 'TimeoutError'));
    }
  }
}

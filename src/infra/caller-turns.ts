import type { Gauge } from 'prom-client';
import { FairPermits } from './fair-permits.js';
import { TooManyRequestsProblem, UnavailableProblem } from './http/problem.js';

/** Of one caller: a request in line is held in memory, with its body. */
const mostInLine = 200;
const retryAfterSeconds = 5;

export interface TurnsOptions {
  atOnce: number;
  /** Of one caller. */
  ofOne: number;
  /** Milliseconds that a request waits for its turn. */
  longestMs: number;
  /** Told to a caller that waits for others. */
  busy: string;
  /** Counts those in line. */
  inLine?: Gauge;
}

/** Turns of callers at something scarce: so many at once, so many of one caller, and none waits for long. */
export class CallerTurns {
  private readonly permits: FairPermits;
  private readonly inLine = new Map<string, number>();

  constructor(private readonly options: TurnsOptions) {
    this.permits = new FairPermits(options);
  }

  /**
   * Runs `work` when it is the caller's turn. Nothing within it may wait for another turn.
   * @throws {TooManyRequestsProblem} where too many of the caller's wait already, or take the turns that it may have;
   *   nothing was done
   * @throws {UnavailableProblem} where others have the turns that this caller might have; nothing was done
   */
  async run<T>(caller: string, work: () => Promise<T>): Promise<T> {
    if (this.waiting(caller) >= mostInLine) throw new TooManyRequestsProblem(retryAfterSeconds);
    if (!(await this.hasTurn(caller))) throw this.late(caller);
    try {
      return await work();
    } finally {
      this.permits.release(caller);
    }
  }

  private late(caller: string): TooManyRequestsProblem | UnavailableProblem {
    const own = this.permits.held(caller) + this.waiting(caller);
    if (own >= this.options.ofOne) return new TooManyRequestsProblem(retryAfterSeconds);
    return new UnavailableProblem(this.options.busy, retryAfterSeconds);
  }

  private waiting(caller: string): number {
    return this.inLine.get(caller) ?? 0;
  }

  private async hasTurn(caller: string): Promise<boolean> {
    this.inLine.set(caller, this.waiting(caller) + 1);
    this.options.inLine?.inc();
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.options.longestMs);
    try {
      return await this.permits.acquire(caller, late.signal);
    } finally {
      clearTimeout(timer);
      this.options.inLine?.dec();
      const left = this.waiting(caller) - 1;
      if (left === 0) this.inLine.delete(caller);
      else this.inLine.set(caller, left);
    }
  }
}

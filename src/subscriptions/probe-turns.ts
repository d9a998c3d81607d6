import { FairPermits } from '../infra/fair-permits.js';
import { TooManyRequestsProblem, UnavailableProblem } from '../infra/http/problem.js';

/** Probes of a process: each keeps a connection, for up to half a minute for each of its calls. Nearly all take milliseconds. */
const most = { atOnce: 64, ofOne: 8 };
/** Of one caller, those that wait included: what waits is held in memory, with its body. */
const mostInLine = 200;
const retryAfterSeconds = 5;

/** Whose callbacks are called, so that receivers which say nothing do not keep those of others from being proved. */
export class ProbeTurns {
  private readonly permits = new FairPermits(most);
  /** By caller, those that wait included. */
  private readonly underWay = new Map<string, number>();

  /** @param longestMs that a probe waits for its turn */
  constructor(private readonly longestMs: number) {}

  /**
   * Runs `work` when it is the caller's turn.
   * @throws {TooManyRequestsProblem} where probes of this caller take all the turns that it may have; nothing was called
   * @throws {UnavailableProblem} where those of others have them; nothing was called
   */
  async run<T>(caller: string, work: () => Promise<T>): Promise<T> {
    if (this.of(caller) >= mostInLine) throw new TooManyRequestsProblem(retryAfterSeconds);
    this.underWay.set(caller, this.of(caller) + 1);
    try {
      if (!(await this.hasTurn(caller))) throw this.late(caller);
      try {
        return await work();
      } finally {
        this.permits.release(caller);
      }
    } finally {
      const left = this.of(caller) - 1;
      if (left === 0) this.underWay.delete(caller);
      else this.underWay.set(caller, left);
    }
  }

  private of(caller: string): number {
    return this.underWay.get(caller) ?? 0;
  }

  private late(caller: string): TooManyRequestsProblem | UnavailableProblem {
    if (this.of(caller) > most.ofOne) return new TooManyRequestsProblem(retryAfterSeconds);
    return new UnavailableProblem(
      'The callbacks of others are called first. Repeat this one later.',
      retryAfterSeconds,
    );
  }

  private async hasTurn(caller: string): Promise<boolean> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.longestMs);
    try {
      return await this.permits.acquire(caller, late.signal);
    } finally {
      clearTimeout(timer);
    }
  }
}

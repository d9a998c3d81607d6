import { FairPermits } from '../fair-permits.js';
import { TooManyRequestsProblem, UnavailableProblem } from '../http/problem.js';
import { requestsInLine } from './postgres.metrics.js';

/** Of one caller: what is in line is held in memory, with its body. */
const mostInLine = 200;
const retryAfterSeconds = 5;

/**
 * Turns at TypeORM's pool, for requests: changes of the catalogue, each of which keeps its connection while it waits for those before
 * it, and what reads much. Without them a few hundred requests of one caller took all connections (docs/decisions/0049).
 */
export class CallerTurns {
  private readonly permits: FairPermits;
  private readonly ofOne: number;
  private readonly inLine = new Map<string, number>();

  /**
   * @param atOnce of which one caller has half
   * @param longestMs that a request waits for its turn
   */
  constructor(
    atOnce: number,
    private readonly longestMs: number,
  ) {
    this.ofOne = Math.ceil(atOnce / 2);
    this.permits = new FairPermits({ atOnce, ofOne: this.ofOne });
  }

  /**
   * Runs `work` when it is the caller's turn. Nothing within it may wait for another turn.
   * @throws {TooManyRequestsProblem} where too many of the caller's wait already, or take the turns that it may have; nothing was done
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
    if (own >= this.ofOne) return new TooManyRequestsProblem(retryAfterSeconds);
    return new UnavailableProblem(
      'Requests of others are carried out first. Repeat this one later.',
      retryAfterSeconds,
    );
  }

  private waiting(caller: string): number {
    return this.inLine.get(caller) ?? 0;
  }

  private async hasTurn(caller: string): Promise<boolean> {
    this.inLine.set(caller, this.waiting(caller) + 1);
    requestsInLine.inc();
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.longestMs);
    try {
      return await this.permits.acquire(caller, late.signal);
    } finally {
      clearTimeout(timer);
      requestsInLine.dec();
      const left = this.waiting(caller) - 1;
      if (left === 0) this.inLine.delete(caller);
      else this.inLine.set(caller, left);
    }
  }
}

/**
 * At a pool of so many connections. A quarter of them is left to everything else. Changes and searches share the turns, unless there are too few for
 * several callers: a search takes seconds, and with it every change would be refused.
 */
export function turnsAt(connections: number, longestMs: number): Record<'changes' | 'searches', CallerTurns> {
  const atOnce = Math.floor((connections * 3) / 4);
  if (atOnce < 3) return { changes: new CallerTurns(1, longestMs), searches: new CallerTurns(1, longestMs) };
  const shared = new CallerTurns(atOnce, longestMs);
  return { changes: shared, searches: shared };
}

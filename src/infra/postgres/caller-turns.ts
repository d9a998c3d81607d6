import { FairPermits } from '../fair-permits.js';
import { TooManyRequestsProblem } from '../http/problem.js';

/** Of one caller: what is in line is held in memory, with its body. */
const mostInLine = 200;
const retryAfterSeconds = 5;

/**
 * Turns at TypeORM's pool, for requests: changes of the catalogue, each of which keeps its connection while it waits for those before
 * it, and what reads much. A quarter of the connections is left to everything else, and one caller has no more than half of the rest:
 * without that bound a few hundred requests of one took all of them (docs/decisions/0049).
 */
export class CallerTurns {
  private readonly permits: FairPermits;
  private readonly inLine = new Map<string, number>();

  /** @param longestMs that a request waits for its turn */
  constructor(
    connections: number,
    private readonly longestMs: number,
  ) {
    const atOnce = Math.max(1, Math.floor((connections * 3) / 4));
    this.permits = new FairPermits({ atOnce, ofOne: Math.ceil(atOnce / 2) });
  }

  /**
   * Runs `work` when it is the caller's turn. Nothing within it may wait for another turn.
   * @throws {TooManyRequestsProblem} where too many of the caller's wait already, or its turn does not come in time; nothing was done
   */
  async run<T>(caller: string, work: () => Promise<T>): Promise<T> {
    if (!(await this.hasTurn(caller))) throw new TooManyRequestsProblem(retryAfterSeconds);
    try {
      return await work();
    } finally {
      this.permits.release(caller);
    }
  }

  private async hasTurn(caller: string): Promise<boolean> {
    const before = this.inLine.get(caller) ?? 0;
    if (before >= mostInLine) return false;
    this.inLine.set(caller, before + 1);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.longestMs);
    try {
      return await this.permits.acquire(caller, late.signal);
    } finally {
      clearTimeout(timer);
      const left = this.inLine.get(caller)! - 1;
      if (left === 0) this.inLine.delete(caller);
      else this.inLine.set(caller, left);
    }
  }
}

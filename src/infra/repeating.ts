import { setTimeout as pause } from 'node:timers/promises';

/**
 * A round that takes longer is left to the next start: what it has not committed is not done, and what it has claimed
 * is free when its lease ends.
 */
const longestStopMs = 3000;

/** Work that a process repeats for as long as it lives, each in its own rhythm and never twice at once. */
export class Repeating {
  private readonly timers = new Set<NodeJS.Timeout>();
  private readonly running = new Set<Promise<void>>();
  private readonly stopping = new AbortController();

  /**
   * @param everyMs from the end of one round to the beginning of the next
   * @param round must not reject; ends soon once the signal is aborted
   */
  repeat(everyMs: number, round: (stopping: AbortSignal) => Promise<void>, firstAfterMs: number): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      const run = round(this.stopping.signal).finally(() => {
        this.running.delete(run);
        if (!this.stopping.signal.aborted) this.repeat(everyMs, round, everyMs);
      });
      this.running.add(run);
    }, firstAfterMs).unref();
    this.timers.add(timer);
  }

  /** No round begins any more. */
  stop(): void {
    this.stopping.abort();
    for (const timer of this.timers) clearTimeout(timer);
  }

  /**
   * Resolves when the rounds have ended, or after 3 s. To be called when every module was told to stop: a round may
   * take long, and the worker of this process has 11 s for its calls, which would begin only then.
   */
  async ended(): Promise<void> {
    await Promise.race([Promise.all(this.running), pause(longestStopMs, undefined, { ref: false })]);
  }
}

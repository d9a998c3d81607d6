import { setImmediate as others } from 'node:timers/promises';

const longestMs = 10;

/**
 * Long work on the event loop, in parts of some 10 ms: between two of them this process does what else is to be done.
 */
export class LongWork {
  private since = performance.now();

  /** After each small part. */
  async yieldIfDue(): Promise<void> {
    if (performance.now() - this.since < longestMs) return;
    await others();
    this.since = performance.now();
  }
}

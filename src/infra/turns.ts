import { setImmediate as turn } from 'node:timers/promises';

const longestMs = 10;

/** For long work on the event loop: lets what else is to be done have its turn between two parts of some 10 ms. */
export class Turns {
  private since = performance.now();

  /** After each small part. */
  async yieldIfDue(): Promise<void> {
    if (performance.now() - this.since < longestMs) return;
    await turn();
    this.since = performance.now();
  }
}

import type { SendingEnded } from '../../src/dispatching/sending-ended.js';
import type { Clock } from '../../src/infra/clock.js';

/** The time between two looks, which passes as a test says, and by pauses, which are over at once. */
export class LookClock implements Clock {
  ms = 0;
  now(): number {
    return this.ms;
  }
  pause(ms: number): Promise<void> {
    this.ms += ms;
    return Promise.resolve();
  }
}

/** Each look comes through: from then on the time of claims counts. */
export async function lookForLong(rule: SendingEnded, clock: LookClock): Promise<void> {
  for (let looks = 0; looks < 5; looks++) {
    await rule.run(new AbortController().signal);
    clock.ms += 5000;
  }
}

import { beforeEach, describe, expect, it } from '@jest/globals';
import { QueueProgress } from './queue-progress.js';

describe('how far a worker is with the queue', () => {
  let progress: QueueProgress;
  beforeEach(() => {
    progress = new QueueProgress();
  });

  it('is not known before it has taken anything', () => {
    expect(progress.report()).toBeUndefined();
  });

  it('is the newest it took, once it is done with everything', () => {
    for (const queuedAt of [5, 9, 7]) progress.take(queuedAt);
    for (const queuedAt of [9, 5, 7]) progress.finish(queuedAt);
    expect(progress.report()).toEqual({ newestTaken: 9, oldestInHand: null });
  });

  it('is held back by the oldest it still has, of several handed out at the same time the last', () => {
    for (const queuedAt of [5, 5, 9]) progress.take(queuedAt);
    progress.finish(5);
    progress.finish(9);
    expect(progress.report()).toEqual({ newestTaken: 9, oldestInHand: 5 });
    progress.finish(5);
    expect(progress.report()).toEqual({ newestTaken: 9, oldestInHand: null });
  });
});

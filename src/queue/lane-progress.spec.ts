import { beforeEach, describe, expect, it } from 'vitest';
import { LaneProgress } from './lane-progress.js';

describe('how far a worker is with the queue', () => {
  let progress: LaneProgress;
  beforeEach(() => {
    progress = new LaneProgress();
  });

  it('is not known before it has taken anything', () => {
    expect(progress.report()).toBeUndefined();
  });

  it('is the newest chunk it took, once it is done with all of them', () => {
    for (const queuedAt of [5, 9, 7]) progress.take(queuedAt);
    for (const queuedAt of [9, 5, 7]) progress.finish(queuedAt);
    expect(progress.report()).toEqual({ newestTaken: 9, oldestUnacknowledged: null });
  });

  it('includes the oldest unacknowledged chunk, until all that were handed out at that time are done', () => {
    for (const queuedAt of [5, 5, 9]) progress.take(queuedAt);
    progress.finish(5);
    progress.finish(9);
    expect(progress.report()).toEqual({ newestTaken: 9, oldestUnacknowledged: 5 });
    progress.finish(5);
    expect(progress.report()).toEqual({ newestTaken: 9, oldestUnacknowledged: null });
  });

  it('is before the oldest chunk that it has given back, until one is taken again', () => {
    for (const queuedAt of [3, 5, 9]) progress.take(queuedAt);
    progress.finish(3);
    progress.giveBackAll();
    expect(progress.report()).toEqual({ newestTaken: 4, oldestUnacknowledged: null });
    progress.take(5);
    expect(progress.report()).toEqual({ newestTaken: 5, oldestUnacknowledged: 5 });
  });

  it('is as it was when it gives back its chunks, and has none', () => {
    progress.giveBackAll();
    expect(progress.report()).toBeUndefined();
    progress.take(5);
    progress.finish(5);
    progress.giveBackAll();
    expect(progress.report()).toEqual({ newestTaken: 5, oldestUnacknowledged: null });
  });
});

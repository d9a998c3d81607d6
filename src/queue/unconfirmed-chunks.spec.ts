import { beforeEach, describe, expect, it } from 'vitest';
import { UnconfirmedChunks, type Settle } from './unconfirmed-chunks.js';

describe('the unconfirmed chunks of a lane', () => {
  let nowMs: number;
  let chunks: UnconfirmedChunks;
  let outcomes: string[];

  beforeEach(() => {
    nowMs = 0;
    outcomes = [];
    chunks = new UnconfirmedChunks(() => nowMs);
  });

  function publish(): Settle {
    const settle: Settle = (outcome) => {
      if (chunks.take(settle, outcome)) outcomes.push(outcome);
    };
    chunks.add(settle);
    return settle;
  }

  it('are refused together once the oldest has waited for 15 s, and not before', () => {
    publish();
    nowMs = 14_999;
    publish();
    expect(chunks.refuseOverdue()).toBe(false);
    nowMs = 15_000;
    expect(chunks.refuseOverdue()).toBe(true);
    expect(outcomes).toEqual(['refused', 'refused']);
    expect([chunks.isTrouble, chunks.isAccepting]).toEqual([true, false]);
  });

  it('are as good as nothing to a lane whose chunks are confirmed in time', () => {
    publish()('confirmed');
    nowMs = 60_000;
    expect([chunks.refuseOverdue(), chunks.isAccepting]).toEqual([false, true]);
    expect(outcomes).toEqual(['confirmed']);
  });

  it('are one every half a minute while the lane is silent, which a late answer ends', () => {
    const late = publish();
    nowMs = 15_000;
    chunks.refuseOverdue();
    nowMs = 44_999;
    expect(chunks.hasRoom).toBe(false);
    nowMs = 45_000;
    expect(chunks.hasRoom).toBe(true);
    publish();
    expect(chunks.hasRoom).toBe(false);
    expect([chunks.heard(), chunks.heard()]).toEqual([true, false]);
    late('confirmed');
    expect(outcomes).toEqual(['refused']);
    expect([chunks.isTrouble, chunks.hasRoom]).toEqual([false, true]);
  });

  it('are trouble no more when nothing has been published to the silent lane for a minute', () => {
    publish();
    nowMs = 15_000;
    chunks.refuseOverdue();
    chunks.refuseAll(); // with the connection: nothing will be answered any more
    nowMs = 74_999;
    expect(chunks.isTrouble).toBe(true);
    nowMs = 75_000;
    expect([chunks.isTrouble, chunks.hasRoom]).toEqual([false, true]);
  });
});

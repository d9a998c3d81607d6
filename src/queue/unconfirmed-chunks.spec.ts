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

  /** One a second. @returns whether the queue was found to be silent */
  function look(times: number): boolean {
    let isSilent = false;
    for (let nr = 0; nr < times; nr++) {
      nowMs += 1000;
      isSilent = chunks.look() || isSilent;
    }
    return isSilent;
  }

  function answer(settle: Settle): boolean {
    const isNews = chunks.heard(settle);
    settle('confirmed');
    return isNews;
  }

  it('are refused together once the oldest has waited for 15 s, and not before', () => {
    publish();
    expect(look(14)).toBe(false);
    publish();
    expect(outcomes).toEqual([]);
    expect(look(1)).toBe(true);
    expect(outcomes).toEqual(['refused', 'refused']);
    expect([chunks.isTrouble, chunks.isAccepting]).toEqual([true, false]);
  });

  it('show that the queue is full when it refuses one, until a while after the last', () => {
    answer(publish());
    expect(chunks.isFull).toBe(false);
    const refused = publish();
    chunks.heard(refused, true);
    refused('refused');
    answer(publish());
    nowMs += 14_999;
    expect(chunks.isFull).toBe(true);
    nowMs += 1;
    expect(chunks.isFull).toBe(false);
  });

  it('are as good as nothing to a lane whose chunks are confirmed in time', () => {
    answer(publish());
    expect([look(60), chunks.isAccepting]).toEqual([false, true]);
    expect(outcomes).toEqual(['confirmed']);
  });

  it('are no more than two thousand: then there is room when one is answered', () => {
    const first = publish();
    for (let nr = 2; nr < 2000; nr++) publish();
    expect(chunks.hasRoom).toBe(true);
    publish();
    expect([chunks.hasRoom, chunks.isAccepting]).toEqual([false, false]);
    answer(first);
    expect([chunks.hasRoom, chunks.isAccepting]).toEqual([true, true]);
  });

  it('wait for a broker that is slow for as long as it answers some of those before them', () => {
    const inLine = Array.from({ length: 2000 }, publish);
    for (const settle of inLine.slice(0, 100)) {
      expect(look(1)).toBe(false);
      answer(settle);
    }
    expect(outcomes).toEqual(Array.from({ length: 100 }, () => 'confirmed'));
    expect([look(14), chunks.size]).toEqual([false, 1900]);
    expect([look(1), chunks.size]).toEqual([true, 0]);
  });

  it('are refused alone where the queue answers those that were published 15 s later', () => {
    publish();
    look(14);
    answer(publish());
    expect([look(1), outcomes]).toEqual([false, ['confirmed']]);
    const later = publish();
    const last = publish();
    answer(later);
    expect([look(1), outcomes]).toEqual([false, ['confirmed', 'confirmed', 'refused']]);
    answer(last);
    expect(outcomes).toEqual(['confirmed', 'confirmed', 'refused', 'confirmed']);
    expect(chunks.isSilent).toBe(false);
  });

  it('wait on where the process stood still, and could read no answer', () => {
    publish();
    nowMs = 600_000;
    expect([chunks.look(), chunks.size]).toEqual([false, 1]);
  });

  it('are one every half a minute while the lane is silent, which a late answer ends', () => {
    const late = publish();
    look(15);
    nowMs = 44_999;
    expect(chunks.hasRoom).toBe(false);
    nowMs = 45_000;
    expect(chunks.hasRoom).toBe(true);
    publish();
    expect(chunks.hasRoom).toBe(false);
    expect([answer(late), answer(late)]).toEqual([true, false]);
    expect(outcomes).toEqual(['refused']);
    expect([chunks.isTrouble, chunks.hasRoom]).toEqual([false, true]);
  });

  it('are waited for no longer than 3 s where they are such a trial', () => {
    publish();
    look(15);
    nowMs = 45_000;
    publish();
    expect([look(2), look(1)]).toEqual([false, true]);
    expect(outcomes).toEqual(['refused', 'refused']);
  });

  it('are trouble no more when nothing has been published to the silent lane for a minute', () => {
    publish();
    look(15);
    chunks.refuseAll(); // with the connection: nothing will be answered any more
    nowMs = 74_999;
    expect(chunks.isTrouble).toBe(true);
    nowMs = 75_000;
    expect([chunks.isTrouble, chunks.hasRoom]).toEqual([false, true]);
  });
});

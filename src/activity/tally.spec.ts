import { beforeEach, describe, expect, it } from 'vitest';
import { noCounts, Tally } from './tally.js';

describe('what a process counts', () => {
  let tally: Tally;

  beforeEach(() => {
    tally = new Tally();
    tally.accepted('cases', 'publisher');
    tally.accepted('cases', 'other');
    tally.duplicate('cases', 'publisher');
    tally.delivered('s1', 0.5);
    tally.delivered('s1', 8);
    tally.delivered('s1', null);
    tally.failedAttempt('s2');
    tally.gaveUp('s2', 3);
    tally.gaveUp(null, 2);
    tally.fetched('s1', 1);
    tally.fetched('s3', 2);
    tally.fetched('s4', 0);
  });

  const counted = [
    { kind: 'all', id: '', counts: { accepted: 2, duplicates: 1, delivered: 6, failedAttempts: 1, gaveUp: 5 } },
    // Beside all, so that one transaction writes both.
    { kind: 'fetched', id: '', counts: { ...noCounts(), delivered: 3 } },
    { kind: 'channel', id: 'cases', counts: { ...noCounts(), accepted: 2, duplicates: 1 } },
    { kind: 'application', id: 'publisher', counts: { ...noCounts(), accepted: 1, duplicates: 1 } },
    { kind: 'application', id: 'other', counts: { ...noCounts(), accepted: 1 } },
    { kind: 'subscription', id: 's1', counts: { ...noCounts(), delivered: 4 }, fetched: 1 },
    { kind: 'subscription', id: 's2', counts: { ...noCounts(), failedAttempts: 1, gaveUp: 3 } },
    { kind: 'subscription', id: 's3', counts: { ...noCounts(), delivered: 2 }, fetched: 2 },
    { kind: 'took', id: '0', counts: { ...noCounts(), delivered: 1 } },
    { kind: 'took', id: '13', counts: { ...noCounts(), delivered: 1 } },
  ];

  it('is in all, by its channel and application, or by its subscription; and is given out once', () => {
    expect(tally.empty()).toEqual(counted);
    expect(tally.empty()).toEqual([]);
  });

  it('is counted on from what could not be written', () => {
    const tallied = tally.empty();
    tally.delivered('s2', 8);
    tally.putBack(tallied);
    const [all] = tally.empty();
    expect(all!.counts).toEqual({ ...counted[0]!.counts, delivered: 7 });
    tally.putBack(tallied);
    expect(tally.empty()).toEqual(counted);
  });
});

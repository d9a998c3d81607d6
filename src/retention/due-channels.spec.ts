import { describe, expect, it } from 'vitest';
import { dueChannels } from './due-channels.js';

const dayMs = 86_400_000;
const day = 20_000;
const channels = [
  { name: 'general', bodyRetentionDays: null },
  { name: 'short', bodyRetentionDays: 1 },
  { name: 'long', bodyRetentionDays: 30 },
];
/** Since the end of the day. */
const after = (days: number) => (day + 1 + days) * dayMs;

describe('the channels whose bodies of a day are past their retention', () => {
  it.each([
    [0, []],
    [1, []],
    [1.001, ['short']],
    [7, ['short']],
    [7.001, ['general', 'short']],
    [31, ['general', 'short', 'long']],
  ])('%s days after its end are %j', (days, expected) => {
    expect(dueChannels(channels, day, after(days), 7)).toEqual(expected);
  });

  it('are only those with days of their own where there is no general number', () => {
    expect(dueChannels(channels, day, after(1000), undefined)).toEqual(['short', 'long']);
  });
});

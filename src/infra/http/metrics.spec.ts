import { afterEach, expect, it, vi } from 'vitest';
import { eventually } from '../../../test/support/eventually.js';
import { standStill } from '../../../test/support/stand-still.js';
import { ownMetrics } from './metrics.js';

afterEach(() => vi.restoreAllMocks());

const longest = async () => {
  const [, value] = /^heraut_longest_standstill_seconds (.+)$/m.exec(await ownMetrics())!;
  return Number(value);
};

it('a standstill is told to all who read within a minute, and not after that', async () => {
  const start = performance.now();
  // Far ahead of what the files before have left.
  const clock = vi.spyOn(performance, 'now').mockReturnValue(start + 600_000);
  await longest();
  const toldAfterStandingStill = async () => {
    standStill(1200);
    return (await longest()) >= 1.1;
  };
  await eventually(toldAfterStandingStill, 'the standstill to be told');
  clock.mockReturnValue(start + 650_000);
  expect(await longest()).toBeGreaterThanOrEqual(1.1);
  expect(await longest()).toBeGreaterThanOrEqual(1.1);
  let at = start + 650_000;
  const toldLater = () => {
    clock.mockReturnValue((at += 70_000));
    return longest();
  };
  await eventually(async () => (await toldLater()) < 1.1, 'the standstill to be over for a minute');
});

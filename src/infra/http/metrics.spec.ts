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
  let at = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => at);
  const isOver = async () => {
    at += 70_000;
    return (await longest()) < 1.1;
  };
  await eventually(isOver, 'what the files before have left to be over');
  const toldAfterStandingStill = async () => {
    standStill(1200);
    return (await longest()) >= 1.1;
  };
  await eventually(toldAfterStandingStill, 'the standstill to be told');
  at += 50_000;
  expect(await longest()).toBeGreaterThanOrEqual(1.1);
  expect(await longest()).toBeGreaterThanOrEqual(1.1);
  await eventually(isOver, 'the standstill to be over for a minute, and the slot that it was in to have ended');
});

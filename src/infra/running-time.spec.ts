import { expect, it } from 'vitest';
import { RunningTime } from './running-time.js';

it('passes while the process runs, and hardly while it stands still', () => {
  let nowMs = 1000;
  const time = new RunningTime(() => nowMs);
  const from = time.now();
  const passed = (ms: number) => {
    nowMs += ms;
    return time.now() - from;
  };
  expect([passed(0), passed(50), passed(150), passed(2100), passed(50)]).toEqual([0, 50, 200, 350, 400]);
  expect(time.lostMs).toBe(1950);
});

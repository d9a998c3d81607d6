import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { CallTime } from './call-time.js';

let nowMs: number;
let time: CallTime;
let stopping: AbortController;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  nowMs = 1000;
  stopping = new AbortController();
  time = new CallTime(stopping.signal, () => nowMs);
});
afterEach(() => {
  time.end();
  vi.useRealTimers();
});

/** With one step of the timer, and what it has left for right after. */
const passes = async (ms: number) => {
  nowMs += ms;
  vi.advanceTimersByTime(50);
  await new Promise((resolve) => setImmediate(resolve));
};

it('ends a call when the process has run for so long', async () => {
  const [short, long] = [time.within(100), time.within(150)];
  await passes(50);
  await passes(50);
  expect([short.aborted, long.aborted]).toEqual([true, false]);
  expect(short.reason).toMatchObject({ name: 'TimeoutError' });
  await passes(50);
  expect([long.aborted, time.hasStoodStill]).toEqual([true, false]);
});

it('ends none for the time that the process stood still, and says that it did', async () => {
  const signal = time.within(10_000);
  await passes(31_000);
  expect([signal.aborted, time.hasStoodStill]).toEqual([false, true]);
});

it('knows that the process stood still before a timer has told it', () => {
  nowMs += 31_000;
  expect(time.hasStoodStill).toBe(true);
});

it('ends none whose answer was read between the timer and the end', async () => {
  const signal = time.within(50);
  setImmediate(() => time.end()); // before that of the limit
  await passes(50);
  expect(signal.aborted).toBe(false);
});

it('ends none that is over', async () => {
  const signal = time.within(100);
  time.end();
  await passes(50);
  await passes(50);
  expect(signal.aborted).toBe(false);
});

it('ends a call at once when the process stops, also one that begins then', () => {
  const [begun, reason] = [time.within(100), new Error('stopping')];
  stopping.abort(reason);
  expect([begun.reason, time.within(100).reason]).toEqual([reason, reason]);
});

it('leaves nothing of a call that is over in the signal of the process', () => {
  time.within(100);
  expect(getEventListeners(stopping.signal, 'abort')).toHaveLength(1);
  time.end();
  expect(getEventListeners(stopping.signal, 'abort')).toEqual([]);
});

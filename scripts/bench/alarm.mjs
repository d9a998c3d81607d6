// Says when the notifications of an open loop are due, in a thread of its own. The timers of an event loop count whole
// milliseconds: a notification was sent 0.6 ms late on an idle machine (p95 1.1), a third of what a lone one takes. A
// thread that waits for nothing else: 0.2 (p95 0.4).
import { once } from 'node:events';
import { parentPort, workerData } from 'node:worker_threads';
import { sharedNowMs } from './clock.mjs';

/** @typedef {{ count: number, ratePerSecond: number }} Schedule */

/**
 * @param {Schedule} schedule
 * @param {number} startedMs
 * @param {number} number
 */
export const dueMs = ({ ratePerSecond }, startedMs, number) => startedMs + (number * 1000) / ratePerSecond;

/** Says `number` when that one is due, until the last; begins when it is told when the first one was. */
async function ring() {
  const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort);
  const schedule = /** @type {Schedule} */ (workerData);
  port.postMessage('ready');
  const [startedMs] = /** @type {[number]} */ (await once(port, 'message'));
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  for (let number = 0; number < schedule.count; number++) {
    Atomics.wait(nothing, 0, 0, Math.max(0, dueMs(schedule, startedMs, number) - sharedNowMs()));
    port.postMessage(number);
  }
  port.close();
}

if (parentPort) await ring();

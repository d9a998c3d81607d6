// How long the disk took for a small write, again and again, in a thread of its own. A 201 waits for the disk: on a
// machine that others use too it stands still now and then for half a second, and whoever reads a latency has to know.
import { fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { sharedNowMs } from './clock.mjs';

/** @typedef {{ startedMs: number, tookMs: number }} DiskWrite */

/** Often enough to meet whatever a p95 of some seconds is made of, and a tenth of what the ledger writes or less. */
const everyMs = 50;
const writtenBytes = 8192;
/** Longer than what is measured in one go. */
const keptMs = 10 * 60_000;

export class DiskWatch {
  /** @type {DiskWrite[]} by time */
  #writes = [];

  /**
   * @param {string} directory where Postgres writes
   * @param {import('../command.mjs').Run['onEnd']} onEnd
   */
  constructor(directory, onEnd) {
    const thread = new Worker(new URL(import.meta.url), { workerData: join(directory, 'disk-watch') });
    onEnd(async () => void (await thread.terminate()));
    thread.on('message', (/** @type {DiskWrite} */ write) => {
      this.#writes.push(write);
      if (write.startedMs - (this.#writes[0]?.startedMs ?? 0) > 2 * keptMs)
        this.#writes = this.#writes.filter(({ startedMs }) => write.startedMs - startedMs <= keptMs);
    });
  }

  /**
   * The longest write that was going on in each part of a time.
   * @param {number} fromMs on the clock that all processes share
   * @param {number} toMs
   * @param {number} parts
   * @returns {number[]} milliseconds
   */
  slowestMs(fromMs, toMs, parts) {
    return slowestIn(this.#writes, { fromMs, toMs, parts });
  }
}

/**
 * @param {DiskWrite[]} writes
 * @param {{ fromMs: number, toMs: number, parts: number }} time
 * @returns {number[]}
 */
export function slowestIn(writes, { fromMs, toMs, parts }) {
  const partMs = (toMs - fromMs) / parts;
  return Array.from({ length: parts }, (_, part) => {
    const beginMs = fromMs + part * partMs;
    const within = writes.filter(
      ({ startedMs, tookMs }) => startedMs < beginMs + partMs && startedMs + tookMs >= beginMs,
    );
    return within.reduce((slowest, { tookMs }) => Math.max(slowest, tookMs), 0);
  });
}

function writeForEver() {
  const file = openSync(/** @type {string} */ (workerData), 'w');
  const page = Buffer.alloc(writtenBytes, 1);
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    const startedMs = sharedNowMs();
    writeSync(file, page, 0, page.length, 0);
    fdatasyncSync(file);
    parentPort?.postMessage({ startedMs, tookMs: sharedNowMs() - startedMs });
    Atomics.wait(nothing, 0, 0, everyMs);
  }
}

if (!isMainThread) writeForEver();

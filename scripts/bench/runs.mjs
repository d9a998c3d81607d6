import { setTimeout as sleep } from 'node:timers/promises';
import { reckon } from './reckoning.mjs';
import { findUnsettled } from './settled.mjs';

/** @typedef {import('./arrivals.mjs').Arrivals} Arrivals */

/** The receivers of a process. @typedef {{ call: import('./child.mjs').Child<import('./arrivals.mjs').ArrivalHandlers>['call'] }} Receivers */

/**
 * Notifications that were published together.
 * @typedef {object} Run
 * @property {number} run
 * @property {string} name
 * @property {Receivers} receiver knows what arrived of it
 * @property {import('./load.mjs').Published} published
 * @property {number} [settledFor] each of its notifications is delivered to so many subscriptions, as the ledger is to say; undefined: not asked
 * @property {boolean} [mayRepeat] calls may have arrived although they were given up: then they come again
 */

/** After this long without a delivery, those that are missing will not come any more. */
const stalledAfterMs = 30_000;
/** After this the benchmark ends, even if deliveries still come. */
const longestWaitMs = 120_000;
/** A delivery that comes twice may do so a little later. */
const latecomersMs = 2000;

/** Remembers everything that was published until it is reckoned. */
export class Runs {
  /** Those not reckoned yet. @type {Run[]} */
  #kept = [];
  #last = 0;
  /** Faults of those that were reckoned, in sentences. @type {string[]} */
  #wrong = [];
  /** All of those that have had runs. @type {Set<Receivers>} */
  #receivers = new Set();

  /**
   * @param {Receivers} receiver
   * @param {{ notifications: number, subscriptions: number, turns?: number }} what
   * @returns {Promise<number>} the number of the run
   */
  async begin(receiver, what) {
    this.#receivers.add(receiver);
    this.#last += 1;
    await receiver.call('begin', { run: this.#last, ...what });
    return this.#last;
  }

  /** @param {Run} run that is published */
  keep(run) {
    this.#kept.push(run);
  }

  /**
   * Until so many deliveries have arrived, or none comes any more.
   * @param {Receivers} receiver
   * @param {number} run
   * @param {number} expected
   * @param {{ stalledMs: number, longestMs: number }} patience
   */
  async untilArrived(receiver, run, expected, patience = { stalledMs: stalledAfterMs, longestMs: longestWaitMs }) {
    let last = -1;
    const giveUpMs = performance.now() + patience.longestMs;
    for (let sinceMs = performance.now(); performance.now() < giveUpMs; await sleep(50)) {
      const { different } = await receiver.call('progress', run);
      if (different >= expected) return;
      if (different > last) [last, sinceMs] = [different, performance.now()];
      if (performance.now() - sinceMs > patience.stalledMs) return;
    }
  }

  /**
   * @param {Receivers} receiver
   * @param {number} run
   * @returns {Promise<Arrivals>}
   */
  async arrivals(receiver, run) {
    const arrivals = await receiver.call('arrivals', run);
    if (!arrivals) throw new Error(`The receiver knows nothing of run ${run}.`);
    return arrivals;
  }

  /**
   * Compares what was accepted with what arrived, and forgets both, here and in the receiver: a measurement that lasts
   * for hours needs no more memory than one of minutes. A delivery that comes later fits no measurement, and is counted
   * as that.
   * @param {{ except: number }} how the last so many runs are kept: a delivery that comes twice may do so a little
   *   later
   */
  async reckon({ except }) {
    for (const run of this.#kept.splice(0, Math.max(0, this.#kept.length - except))) {
      this.#wrong.push(...reckon(run, await this.arrivals(run.receiver, run.run)));
      await run.receiver.call('forget', run.run);
    }
  }

  /**
   * Waits until the ledger has the outcome of each delivery of the runs that are kept.
   * @param {import('./settled.mjs').Ledger} ledger
   */
  async untilSettled(ledger) {
    for (const run of this.#kept) {
      const { settledFor } = run;
      if (settledFor === undefined) continue;
      this.#wrong.push(...(await findUnsettled(ledger, run, settledFor)));
      delete run.settledFor; // nothing changes it any more, and its rows may go
    }
  }

  /**
   * After the last measurement.
   * @returns {Promise<string[]>} faults of all of them, in sentences
   */
  async findWrong() {
    await sleep(latecomersMs);
    await this.reckon({ except: 0 });
    let strange = 0;
    for (const receiver of this.#receivers) strange += await receiver.call('strange', undefined);
    return strange > 0 ? [...this.#wrong, `${strange} calls to the receivers fit no measurement`] : this.#wrong;
  }
}

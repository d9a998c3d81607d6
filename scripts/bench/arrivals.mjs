import { sharedNowMs } from './clock.mjs';
import { subscriptionOf } from './http-by-hand.mjs';
import { readTail } from './notification.mjs';

/**
 * The deliveries of one measurement that arrived, that is, were called and answered well. The delivery of notification
 * `n` for subscription `s` has index `n * subscriptions + s`; where subscriptions get the notifications in turn, that
 * of `n` has index `n`.
 * @typedef {object} Arrivals
 * @property {number} subscriptions that each notification is for
 * @property {number} turns subscriptions that get the notifications in turn; 0: each gets all
 * @property {number} calls answered in whatever way, or not at all
 * @property {number} different deliveries that arrived at least once
 * @property {number} lastMs when the last of them came, on the shared clock
 * @property {Uint8Array} times how often each came; 255 means that often or more
 * @property {string[]} ids webhook-id of each
 * @property {Float64Array} latencyMs from the time it carries to its first arrival
 * @property {number} bodyBytes of the last one
 */

/** A call of a delivery that a measurement expects. @typedef {{ arrivals: Arrivals, index: number, sentMs: number, id: string, bodyBytes: number }} Delivered */

/** Those of every measurement that is not forgotten yet. */
export class ArrivalBook {
  /** @type {Map<number, Arrivals>} */
  #runs = new Map();
  /** Calls that fit no measurement. */
  strange = 0;

  /**
   * @param {{ run: number, notifications: number, subscriptions: number, turns?: number }} what at most that many
   * notifications
   */
  begin({ run, notifications, subscriptions, turns = 0 }) {
    const deliveries = notifications * subscriptions;
    this.#runs.set(run, {
      subscriptions,
      turns,
      calls: 0,
      different: 0,
      lastMs: 0,
      times: new Uint8Array(deliveries),
      ids: Array.from({ length: deliveries }, () => ''),
      latencyMs: new Float64Array(deliveries),
      bodyBytes: 0,
    });
  }

  /**
   * @param {import('./http-by-hand.mjs').Call} call
   * @returns {Delivered | undefined} undefined if it fits no measurement
   */
  read(call) {
    const { id = '', input, end, bodyBytes } = call;
    const tail = readTail(input, end);
    const arrivals = tail && this.#runs.get(tail.run);
    if (tail && arrivals) {
      const subscription = subscriptionOf(call);
      const { turns, subscriptions, times } = arrivals;
      const isForIt = turns === 0 || tail.number % turns === subscription;
      const index = turns === 0 ? tail.number * subscriptions + subscription : tail.number;
      if (isForIt && index >= 0 && index < times.length) {
        arrivals.calls += 1;
        // A copy: a slice of the head would keep all of it in memory.
        return { arrivals, index, sentMs: tail.sentMs, id: Buffer.from(id, 'latin1').toString('latin1'), bodyBytes };
      }
    }
    this.strange += 1;
    return undefined;
  }

  /** It was answered well. @param {Delivered} delivered */
  count({ arrivals, index, sentMs, id, bodyBytes }) {
    const now = sharedNowMs();
    const times = arrivals.times[index] ?? 0;
    if (times < 255) arrivals.times[index] = times + 1;
    if (times > 0) return;
    arrivals.different += 1;
    arrivals.lastMs = now;
    arrivals.latencyMs[index] = now - sentMs;
    arrivals.ids[index] = id;
    arrivals.bodyBytes = bodyBytes;
  }

  /** The calls by which the benchmark asks a receiver for its arrivals. */
  handlers() {
    return {
      /** @param {Parameters<ArrivalBook['begin']>[0]} what */
      begin: (what) => this.begin(what),

      /** @param {number} run */
      progress: (run) => {
        const { different = 0, lastMs = 0, calls = 0 } = this.#runs.get(run) ?? {};
        return { different, lastMs, calls };
      },

      /** @param {number} run */
      arrivals: (run) => this.#runs.get(run),

      /** @param {number} run of which every further delivery fits no measurement */
      forget: (run) => this.#runs.delete(run),

      strange: () => this.strange,
    };
  }
}

/** @typedef {ReturnType<ArrivalBook['handlers']>} ArrivalHandlers */

import { setTimeout as sleep } from 'node:timers/promises';
import { channels } from './notification.mjs';
import { rssMegabytes, cpuMicrosOfMachine, cpuMicrosOfTree } from './processes.mjs';
import { reckon } from './reckoning.mjs';

/** @typedef {import('./child.mjs').Child<import('./receiver.mjs').ReceiverHandlers>} Receiver */
/** @typedef {import('./child.mjs').Child<import('./load.mjs').LoadHandlers>} Load */
/** @typedef {import('./load.mjs').Published} Published */
/** @typedef {import('./receiver.mjs').Arrivals} Arrivals */
/** @typedef {import('./installation.mjs').Installation} Installation */
/** @typedef {import('./installation.mjs').Part} Part */

/**
 * One measurement: the published notifications, and the number of subscriptions.
 * @typedef {object} Run
 * @property {number} run
 * @property {string} name
 * @property {number} subscriptions
 * @property {Published} published
 */

/** @typedef {{ p50: number, p95: number, p99: number }} Percentiles */

const publishers = 128;
/** After this long without a delivery, those that are missing will not come any more. */
const stalledAfterMs = 30_000;
/** After this the benchmark ends, even if deliveries still come. */
const longestWaitMs = 120_000;
/** A delivery that comes twice may do so a little later. */
const latecomersMs = 2000;
/** Results are written, logs flushed and memory tidied up a little after the last delivery; it is part of its price. */
const aftermathMs = 1000;
/** Until then code is still being compiled and memory still grows to its working size. */
const warmUpNotifications = 40_000;
export const fanOutSubscriptions = 100;

/** Measures, and remembers every notification until it is reckoned. */
export class Measurements {
  /** Those not reckoned yet. @type {Run[]} */
  #runs = [];
  #lastRun = 0;
  /** What is wrong with those that were reckoned, in sentences. @type {string[]} */
  #wrong = [];

  /**
   * @param {object} parts
   * @param {Installation} parts.installation
   * @param {Receiver} parts.receiver
   * @param {Load} parts.load
   * @param {string} parts.receiverUrl
   * @param {(line: string) => void} parts.log
   */
  constructor({ installation, receiver, load, receiverUrl, log }) {
    this.installation = installation;
    this.receiver = receiver;
    this.load = load;
    this.receiverUrl = receiverUrl;
    this.log = log;
  }

  async subscribe() {
    const callbackUrls = Array.from({ length: fanOutSubscriptions }, (_, number) => `${this.receiverUrl}/${number}`);
    await this.installation.subscribe(channels.single, callbackUrls.slice(0, 1));
    await this.installation.subscribe(channels.many, callbackUrls);
  }

  /** @param {number} seconds */
  async warmUp(seconds) {
    this.log('warming up …');
    await this.#publish('warm-up', { seconds, count: warmUpNotifications });
    await this.#publish('fan-out warm-up', { seconds, count: 30, channel: channels.many, together: 8 });
    await this.raw(1);
    await sleep(aftermathMs);
  }

  /**
   * The limit: the same bytes, posted straight to the receiver by the same client.
   * @param {number} seconds
   * @returns {Promise<number>} deliveries per second
   */
  async raw(seconds) {
    const { published, arrivals } = await this.#publish('raw', { seconds, count: 100_000 * seconds, isRaw: true });
    const perSecond = rateOf(published, arrivals);
    this.log(`raw: ${Math.round(perSecond)}/s`);
    return perSecond;
  }

  /** @param {{ seconds: number, count: number }} bounds */
  async closedLoop({ seconds, count }) {
    this.log(`closed loop: ${publishers} publishers …`);
    const before = this.#cpu();
    const beforeMs = performance.now();
    const { published, arrivals } = await this.#publish('closed loop', { seconds, count });
    await sleep(aftermathMs);
    const after = this.#cpu();
    const elapsedMicros = (performance.now() - beforeMs) * 1000;
    const perDelivery = mapValues(
      after.parts,
      (micros, part) => (micros - (before.parts[part] ?? 0)) / arrivals.different,
    );
    const machineMicros = after.machine - before.machine;
    const ourMicros = arrivals.different * Object.values(perDelivery).reduce((sum, micros) => sum + micros, 0);
    const deliveriesPerSecond = rateOf(published, arrivals);
    this.log(`closed loop: ${Math.round(deliveriesPerSecond)} deliveries/s`);
    return {
      deliveries: arrivals.different,
      deliveriesPerSecond,
      cpuMicrosPerDelivery: perDelivery,
      bodyBytes: arrivals.bodyBytes,
      /** In processors: the work of the machine for other processes meanwhile. */
      elsewhere: Math.max(0, machineMicros - ourMicros) / elapsedMicros,
      acceptedMs: percentiles(published.acceptedMs),
    };
  }

  /** @param {{ ratePerSecond: number, seconds: number }} bounds */
  async openLoop({ ratePerSecond, seconds }) {
    this.log(`open loop: ${ratePerSecond}/s …`);
    const { published, arrivals } = await this.#publish('open loop', {
      seconds,
      count: ratePerSecond * seconds,
      ratePerSecond,
    });
    const publishToReceiveMs = percentiles(arrivals.latencyMs.slice(0, published.ids.length));
    this.log(`open loop: ${ratePerSecond}/s arrives within ${publishToReceiveMs.p95.toFixed(1)} ms (p95)`);
    return { ratePerSecond, publishToReceiveMs, acceptedMs: percentiles(published.acceptedMs) };
  }

  /** @param {{ seconds: number, count: number }} bounds */
  async fanOut({ seconds, count }) {
    this.log(`fan-out: 1 → ${fanOutSubscriptions} …`);
    const options = { seconds, count, channel: channels.many, together: 8 };
    const { published, arrivals } = await this.#publish('fan-out', options);
    const deliveriesPerSecond = rateOf(published, arrivals);
    this.log(`fan-out: ${Math.round(deliveriesPerSecond)} deliveries/s`);
    return { subscriptions: fanOutSubscriptions, deliveriesPerSecond };
  }

  /** Resident megabytes of Heraut's processes. */
  rss() {
    const { api, worker } = this.installation.pids;
    return { api: api ? rssMegabytes(api) : 0, worker: worker ? rssMegabytes(worker) : 0 };
  }

  /**
   * Compares what was accepted with what arrived, and forgets both, here and in the receiver: a measurement that lasts for hours
   * needs no more memory than one of minutes. A delivery that comes later fits no measurement, and is counted as that.
   * @param {{ except: number }} how the last so many measurements are kept: a delivery that comes twice may do so a little later
   */
  async reckon({ except }) {
    for (const run of this.#runs.splice(0, Math.max(0, this.#runs.length - except))) {
      this.#wrong.push(...reckon(run, await this.#arrivals(run.run)));
      await this.receiver.call('forget', run.run);
    }
  }

  /**
   * After the last measurement.
   * @returns {Promise<string[]>} what is wrong with all of them, in sentences
   */
  async findWrong() {
    await sleep(latecomersMs);
    await this.reckon({ except: 0 });
    const strange = await this.receiver.call('strange', undefined);
    return strange > 0 ? [...this.#wrong, `${strange} calls to the receiver fit no measurement`] : this.#wrong;
  }

  #cpu() {
    const pids = { ...this.installation.pids, load: this.load.pid, receiver: this.receiver.pid };
    return { parts: mapValues(pids, (pid) => cpuMicrosOfTree(pid)), machine: cpuMicrosOfMachine() };
  }

  /**
   * Publishes, and waits until everything that was accepted has arrived, or nothing comes any more.
   * @param {string} name
   * @param {object} how
   * @param {number} how.seconds
   * @param {number} how.count
   * @param {number} [how.ratePerSecond] an open loop; otherwise a closed one
   * @param {boolean} [how.isRaw] straight to the receiver
   * @param {string} [how.channel]
   * @param {number} [how.together] publishers of a closed loop
   */
  async #publish(
    name,
    { seconds, count, ratePerSecond, isRaw = false, channel = channels.single, together = publishers },
  ) {
    const run = ++this.#lastRun;
    const subscriptions = channel === channels.many ? fanOutSubscriptions : 1;
    await this.receiver.call('begin', { run, notifications: count, subscriptions });
    const target = isRaw ? this.#receiverAsTarget(run) : this.#apiAsTarget(run, channel);
    const publishing = ratePerSecond
      ? this.load.call('openLoop', { target, ratePerSecond, seconds })
      : this.load.call('closedLoop', { target, publishers: together, seconds, count });
    const published = await this.#reporting(name, run, publishing);
    const expected = published.ids.filter((id) => id !== '').length * subscriptions;
    await this.#reporting(name, run, this.#arrived(run, expected));
    this.#runs.push({ run, name, subscriptions, published });
    const arrivals = await this.#arrivals(run);
    return { published, arrivals };
  }

  /**
   * @param {number} run
   * @param {number} expected
   */
  async #arrived(run, expected) {
    let last = -1;
    const giveUpMs = performance.now() + longestWaitMs;
    for (let sinceMs = performance.now(); performance.now() < giveUpMs; await sleep(50)) {
      const { different } = await this.receiver.call('progress', run);
      if (different >= expected) return;
      if (different > last) [last, sinceMs] = [different, performance.now()];
      if (performance.now() - sinceMs > stalledAfterMs) return;
    }
  }

  /**
   * @param {number} run
   * @returns {Promise<Arrivals>}
   */
  async #arrivals(run) {
    const arrivals = await this.receiver.call('arrivals', run);
    if (!arrivals) throw new Error(`The receiver knows nothing of run ${run}.`);
    return arrivals;
  }

  /**
   * @template T
   * @param {string} name
   * @param {number} run
   * @param {Promise<T>} work
   * @returns {Promise<T>}
   */
  async #reporting(name, run, work) {
    const timer = setInterval(() => {
      void this.receiver.call('progress', run).then(({ different }) => this.log(`${name}: ${different} arrived`));
    }, 5000);
    try {
      return await work;
    } finally {
      clearInterval(timer);
    }
  }

  /**
   * @param {number} run
   * @param {string} channel
   * @returns {import('./load.mjs').Target}
   */
  #apiAsTarget(run, channel) {
    const { url, token } = this.installation;
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    return { origin: url, path: '/api/v1/notificaties', headers, status: 201, isReceiver: false, channel, run };
  }

  /**
   * @param {number} run
   * @returns {import('./load.mjs').Target}
   */
  #receiverAsTarget(run) {
    const headers = {
      'content-type': 'application/json',
      accept: '*/*',
      'user-agent': 'Heraut/0.0.0',
      authorization: 'Bearer bench',
    };
    const channel = channels.single;
    return { origin: this.receiverUrl, path: '/0', headers, status: 204, isReceiver: true, channel, run };
  }
}

/**
 * From the first publication to the last arrival.
 * @param {Published} published
 * @param {Arrivals} arrivals
 */
function rateOf(published, arrivals) {
  return (arrivals.different * 1000) / (arrivals.lastMs - published.startedMs);
}

/**
 * @param {Float64Array} values
 * @returns {Percentiles}
 */
function percentiles(values) {
  const sorted = values.toSorted();
  const at = (/** @type {number} */ share) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? NaN;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

/**
 * @template {string} Key
 * @template From, To
 * @param {Partial<Record<Key, From>>} object
 * @param {(value: From, key: Key) => To} change
 * @returns {Partial<Record<Key, To>>}
 */
function mapValues(object, change) {
  const entries = /** @type {[Key, From][]} */ (Object.entries(object)).map(([key, value]) => [
    key,
    change(value, key),
  ]);
  return Object.fromEntries(entries);
}

import { setTimeout as sleep } from 'node:timers/promises';
import { channels } from './notification.mjs';
import { percentiles } from './percentiles.mjs';
import { rssMegabytes, cpuMicrosOfMachine, cpuMicrosOfTree } from './processes.mjs';

/** @typedef {import('./child.mjs').Child<import('./receiver.mjs').ReceiverHandlers>} Receiver */
/** @typedef {import('./child.mjs').Child<import('./load.mjs').LoadHandlers>} Load */
/** @typedef {import('./load.mjs').Published} Published */
/** @typedef {import('./arrivals.mjs').Arrivals} Arrivals */
/** @typedef {import('./runs.mjs').Runs} Runs */
/** @typedef {import('./installation.mjs').Installation} Installation */
/** @typedef {import('./installation.mjs').Part} Part */

const publishers = 128;
/** Results are written, logs flushed and memory tidied up a little after the last delivery; it is part of its price. */
const aftermathMs = 1000;
/** Until then code is still being compiled and memory still grows to its working size. */
const warmUpNotifications = 40_000;
const fanOutSubscriptions = 100;

export class Measurements {
  /**
   * @param {object} parts
   * @param {Runs} parts.runs
   * @param {Installation} parts.installation
   * @param {Receiver} parts.receiver
   * @param {Load} parts.load
   * @param {string} parts.receiverUrl
   * @param {(line: string) => void} parts.log
   */
  constructor({ runs, installation, receiver, load, receiverUrl, log }) {
    this.runs = runs;
    this.installation = installation;
    this.receiver = receiver;
    this.load = load;
    this.receiverUrl = receiverUrl;
    this.log = log;
  }

  async subscribe() {
    const { installation, receiverUrl } = this;
    await installation.createChannel(channels.single);
    await installation.subscribe({ channel: channels.single, callbackUrl: `${receiverUrl}/0` });
    await installation.createChannel(channels.many);
    for (let number = 0; number < fanOutSubscriptions; number++) {
      await installation.subscribe({ channel: channels.many, callbackUrl: `${receiverUrl}/${number}` });
    }
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
    const { runs, receiver } = this;
    const subscriptions = channel === channels.many ? fanOutSubscriptions : 1;
    const run = await runs.begin(receiver, { notifications: count, subscriptions });
    const target = isRaw ? this.#receiverAsTarget(run) : apiAsTarget(this.installation, { run, channel });
    const publishing = ratePerSecond
      ? this.load.call('openLoop', { target, ratePerSecond, seconds })
      : this.load.call('closedLoop', { target, publishers: together, seconds, count });
    const published = await this.#reporting(name, run, publishing);
    const expected = published.ids.filter((id) => id !== '').length * subscriptions;
    await this.#reporting(name, run, runs.untilArrived(receiver, run, expected));
    runs.keep({ run, name, receiver, published, ...(!isRaw && { settledFor: subscriptions }) });
    return { published, arrivals: await runs.arrivals(receiver, run) };
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
 * @param {Installation} installation
 * @param {{ run: number, channel: string, turns?: number, headers?: Record<string, string> }} how `headers`: beside the
 *   usual ones
 * @returns {import('./load.mjs').Target}
 */
export function apiAsTarget({ url, token }, { run, channel, turns, headers }) {
  return {
    origin: url,
    path: '/api/v1/notificaties',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
    status: 201,
    isReceiver: false,
    channel,
    run,
    turns,
  };
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

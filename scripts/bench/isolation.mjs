// How much one healthy endpoint feels of others: of 400 notifications a second for other healthy ones, then for ones in
// trouble.
import { setTimeout as sleep } from 'node:timers/promises';
import { sharedNowMs } from './clock.mjs';
import { channels } from './notification.mjs';
import { rows } from './odd-endpoints.mjs';
import { percentiles } from './percentiles.mjs';
import { countLost } from './reckoning.mjs';
import { apiAsTarget } from './scenarios.mjs';

/** @typedef {import('./odd-endpoints.mjs').OddEndpoints} OddEndpoints */
/** @typedef {import('./odd-endpoints.mjs').Kind} Kind */
/** @typedef {import('./odd-endpoints.mjs').Row} Row */
/** @typedef {import('./runs.mjs').Run} Run */

/**
 * @typedef {object} Isolation
 * @property {Kind} kind
 * @property {number} endpoints
 * @property {number} undisturbedP95Ms beside as many healthy ones
 * @property {number[]} undisturbedThirdsP95Ms of that time, in turn: how far they are apart is what the machine does by itself
 * @property {number} besideP95Ms
 * @property {number[]} thirdsP95Ms of the time beside them, in turn: the first has the onset
 * @property {number[]} undisturbedThirdsDiskMs the longest small write of the benchmark's own in each of them: a 201 waits for the disk
 * @property {number[]} thirdsDiskMs
 * @property {number} lost accepted deliveries that never came, of the healthy one and of the others
 * @property {number} calls to the others while they were in trouble
 * @property {number} repeated deliveries of the others that were answered well more than once
 * @property {number} held deliveries of the others that had not arrived when they were well again; or the burst
 * @property {number} secondsUntilAllDelivered from then to the last of these
 * @property {number} machineSeconds that the closed loop of the same run takes for so many
 */

/**
 * @typedef {object} Publication
 * @property {import('./runs.mjs').Receivers} receiver
 * @property {string} channel
 * @property {number} seconds
 * @property {number} [turns]
 * @property {boolean} [mayRepeat]
 */

const ratePerSecond = 400;
/** Of the time beside the healthy ones: trouble has an onset, and what comes later. */
const besideTimes = 2;
const burstPerSecond = 1000;
const burstPublishers = 128;
/**
 * After subscriptions were made: what that costs is not what their endpoints cost, and two hundred of them cost a
 * second or two.
 */
const subscribedBeforeMs = 3000;
/** The neighbour of a burst is called from so long before it. */
const beforeBurstMs = 2000;
/** So that those that failed before their endpoint was given up come soon after it is well again. */
const retryPolicy = { maxRetries: 100, backoffFactor: 1, baseFactor: 2, maxDelaySeconds: 5, jitter: 0 };
/** A probe may be a minute away. */
const patience = { stalledMs: 90_000, longestMs: 400_000 };
/** A call that hangs may be answered just when the worker gives it up. @type {readonly Kind[]} */
const mayRepeat = ['hanging', 'hanging-later', 'not-accepting'];

export class IsolationMeasurements {
  /**
   * @param {object} parts
   * @param {import('./scenarios.mjs').Measurements} parts.measurements
   * @param {OddEndpoints} parts.odd
   * @param {OddEndpoints} parts.freezable of a process of their own
   * @param {import('./disk-watch.mjs').DiskWatch} parts.disk
   * @param {(line: string) => void} parts.log
   */
  constructor({ measurements, odd, freezable, disk, log }) {
    this.measurements = measurements;
    this.odd = odd;
    this.freezable = freezable;
    this.disk = disk;
    this.log = log;
  }

  /**
   * @param {{ seconds: number, kinds: readonly Kind[], closedLoopPerSecond: number }} how
   * @returns {Promise<Isolation[]>}
   */
  async measure({ seconds, kinds, closedLoopPerSecond }) {
    const { installation } = this.measurements;
    await installation.createChannel(channels.others);
    await installation.setRetryPolicy(retryPolicy);
    /** @type {Isolation[]} */
    const measured = [];
    for (const row of rows.filter(({ kind }) => kinds.includes(kind))) {
      const { kind, endpoints } = row;
      const figures =
        kind === 'burst'
          ? await this.#besideBurst(row, { seconds, closedLoopPerSecond })
          : await this.#besideTrouble(row, seconds);
      measured.push({ kind, endpoints, ...figures, machineSeconds: figures.held / closedLoopPerSecond });
      this.log(`isolation: ${figures.held} delivered after ${figures.secondsUntilAllDelivered.toFixed(1)} s`);
    }
    return measured;
  }

  /**
   * @param {Row} row
   * @param {number} seconds
   */
  async #besideTrouble(row, seconds) {
    const { kind } = row;
    const undisturbed = await this.#besideHealthy(row, seconds);
    // In their place; or the same, which have shown by now that they answer.
    const odd = kind === 'not-accepting' ? this.freezable : this.odd;
    if (kind !== 'hanging-later') {
      await this.odd.unsubscribe();
      await odd.subscribe(row);
      await sleep(subscribedBeforeMs);
    }
    const beside = await this.#sideBySide(row, {
      seconds: seconds * besideTimes,
      receiver: odd.receivers,
      begin: () => odd.beginTrouble(kind),
    });
    const { others } = beside;
    const { calls, different } = await odd.endTrouble(kind, others.run);
    const wellMs = sharedNowMs();
    await this.#untilArrived(others);
    await odd.unsubscribe();

    const arrivals = await this.measurements.runs.arrivals(others.receiver, others.run);
    return {
      undisturbedP95Ms: p95Of(undisturbed.latencyMs),
      undisturbedThirdsP95Ms: thirdsOf(undisturbed.latencyMs),
      besideP95Ms: p95Of(beside.latencyMs),
      thirdsP95Ms: thirdsOf(beside.latencyMs),
      undisturbedThirdsDiskMs: undisturbed.diskMs,
      thirdsDiskMs: beside.diskMs,
      lost: await this.#countLost([undisturbed.healthy, undisturbed.others, beside.healthy, others]),
      calls,
      repeated: arrivals.times.filter((times) => times > 1).length,
      held: acceptedOf(others) - different,
      secondsUntilAllDelivered: Math.max(0, arrivals.lastMs - wellMs) / 1000,
    };
  }

  /**
   * Published with a `Deliver-After`, so that nothing but its delivery is going on when it is due.
   * @param {Row} row
   * @param {{ seconds: number, closedLoopPerSecond: number }} how
   */
  async #besideBurst(row, { seconds, closedLoopPerSecond }) {
    const { runs, receiver } = this.measurements;
    const undisturbed = await this.#besideHealthy(row, seconds);
    const count = burstPerSecond * seconds;
    const drainSeconds = count / closedLoopPerSecond;
    const { burst, dueMs } = await this.#schedule(count, Math.ceil(5 + 3 * drainSeconds));
    await sleep(Math.max(0, dueMs - beforeBurstMs - sharedNowMs()));
    const neighbourSeconds = Math.ceil(beforeBurstMs / 1000 + Math.max(5, 2 * drainSeconds));
    const publication = { receiver, channel: channels.single, seconds: neighbourSeconds };
    const neighbour = await this.#publish('beside a burst', await this.#begin(publication), publication);
    await this.#untilArrived(neighbour);
    await this.#untilArrived(burst);
    await this.odd.unsubscribe();

    const arrivals = await runs.arrivals(burst.receiver, burst.run);
    const numberAt = (/** @type {number} */ ms) => ((ms - neighbour.published.startedMs) * ratePerSecond) / 1000;
    const besideMs = (await this.#latencies(neighbour)).slice(
      Math.max(0, numberAt(dueMs)),
      Math.max(0, numberAt(arrivals.lastMs)),
    );
    return {
      undisturbedP95Ms: p95Of(undisturbed.latencyMs),
      undisturbedThirdsP95Ms: thirdsOf(undisturbed.latencyMs),
      besideP95Ms: p95Of(besideMs),
      thirdsP95Ms: thirdsOf(besideMs),
      undisturbedThirdsDiskMs: undisturbed.diskMs,
      thirdsDiskMs: this.disk.slowestMs(dueMs, arrivals.lastMs, 3),
      lost: await this.#countLost([undisturbed.healthy, undisturbed.others, neighbour, burst]),
      calls: arrivals.calls,
      repeated: arrivals.times.filter((times) => times > 1).length,
      held: acceptedOf(burst),
      secondsUntilAllDelivered: (arrivals.lastMs - dueMs) / 1000,
    };
  }

  /**
   * Beside others that are well, which stay subscribed.
   * @param {Row} row
   * @param {number} seconds
   */
  async #besideHealthy(row, seconds) {
    await this.odd.subscribe(row);
    await sleep(subscribedBeforeMs);
    const undisturbed = await this.#sideBySide({ ...row, kind: 'healthy' }, { seconds, receiver: this.odd.receivers });
    await this.#untilArrived(undisturbed.others);
    return undisturbed;
  }

  /**
   * Publishes for the healthy endpoint and, as fast, for the others. Resolves when everything for the healthy one has
   * arrived.
   * @param {{ kind: string, endpoints: number }} row
   * @param {object} how
   * @param {number} how.seconds
   * @param {import('./runs.mjs').Receivers} how.receiver of the others
   * @param {() => Promise<void>} [how.begin] right before the first is published
   */
  async #sideBySide({ kind, endpoints }, { seconds, receiver, begin }) {
    const ofHealthy = { receiver: this.measurements.receiver, channel: channels.single, seconds };
    const ofOthers = {
      receiver,
      channel: channels.others,
      seconds,
      turns: endpoints,
      mayRepeat: mayRepeat.some((each) => each === kind),
    };
    const [first, second] = [await this.#begin(ofHealthy), await this.#begin(ofOthers)];
    await begin?.();
    const [healthy, others] = await Promise.all([
      this.#publish(`beside ${endpoints} ${kind}`, first, ofHealthy),
      this.#publish(`${endpoints} ${kind}`, second, ofOthers),
    ]);
    await this.#untilArrived(healthy);
    const { startedMs } = healthy.published;
    const diskMs = this.disk.slowestMs(startedMs, startedMs + seconds * 1000, 3);
    const latencyMs = await this.#latencies(healthy);
    this.log(`isolation: beside ${endpoints} ${kind}, p95 is ${p95Of(latencyMs).toFixed(1)} ms`);
    return { healthy, others, latencyMs, diskMs };
  }

  /**
   * Publishes for one of the others what is all due at the same time.
   * @param {number} count
   * @param {number} seconds that it may take
   */
  async #schedule(count, seconds) {
    const { runs, load, installation } = this.measurements;
    const receiver = this.odd.receivers;
    const dueAt = Date.now() + seconds * 1000 + beforeBurstMs;
    const dueMs = sharedNowMs() + dueAt - Date.now();
    const run = await runs.begin(receiver, { notifications: count, subscriptions: 1, turns: 1 });
    const headers = { 'deliver-after': new Date(dueAt).toISOString() };
    const target = apiAsTarget(installation, { run, channel: channels.others, headers });
    const published = await load.call('closedLoop', { target, publishers: burstPublishers, seconds, count });
    const burst = { run, name: 'burst', receiver, published };
    runs.keep(burst);
    if (acceptedOf(burst) < count)
      throw new Error(`Only ${acceptedOf(burst)} of ${count} were published in ${seconds} s.`);
    return { burst, dueMs };
  }

  /**
   * @param {Publication} publication
   * @returns {Promise<number>} the run
   */
  #begin({ receiver, seconds, turns }) {
    const notifications = ratePerSecond * seconds;
    return this.measurements.runs.begin(receiver, { notifications, subscriptions: 1, turns });
  }

  /**
   * @param {string} name
   * @param {number} run
   * @param {Publication} publication
   * @returns {Promise<Run>}
   */
  async #publish(name, run, { receiver, channel, seconds, turns, mayRepeat: may }) {
    const { runs, load, installation } = this.measurements;
    const target = apiAsTarget(installation, { run, channel, turns });
    const published = await load.call('openLoop', { target, ratePerSecond, seconds });
    const publication = { run, name, receiver, published, mayRepeat: may };
    runs.keep(publication);
    return publication;
  }

  /** @param {Run} run */
  async #untilArrived(run) {
    await this.measurements.runs.untilArrived(run.receiver, run.run, acceptedOf(run), patience);
  }

  /**
   * Of each that was accepted, in the order of publication; one that never came took for ever.
   * @param {Run} run
   */
  async #latencies({ run, receiver, published: { ids } }) {
    const { times, latencyMs } = await this.measurements.runs.arrivals(receiver, run);
    return latencyMs
      .slice(0, ids.length)
      .map((ms, number) => (ids[number] === '' || (times[number] ?? 0) > 0 ? ms : Infinity));
  }

  /** @param {Run[]} published */
  async #countLost(published) {
    let lost = 0;
    for (const run of published) {
      lost += countLost(run.published, await this.measurements.runs.arrivals(run.receiver, run.run));
    }
    return lost;
  }
}

/** @param {Run} run */
const acceptedOf = ({ published: { ids } }) => ids.filter((id) => id !== '').length;

/** @param {Float64Array} latencyMs */
const p95Of = (latencyMs) => percentiles(latencyMs).p95;

/** @param {Float64Array} latencyMs in the order of publication, at a steady rate */
export function thirdsOf(latencyMs) {
  const third = Math.ceil(latencyMs.length / 3);
  return [0, 1, 2].map((nr) => p95Of(latencyMs.slice(nr * third, (nr + 1) * third)));
}

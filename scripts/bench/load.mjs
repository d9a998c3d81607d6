// The publishers of the benchmark, in a process of their own: undici at its cheapest, the way Heraut's own worker calls
// receivers, so that the raw limit is the rate that Heraut would reach if all the rest cost nothing.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { Pool } from 'undici';
import { dueMs } from './alarm.mjs';
import { answerCalls } from './child.mjs';
import { sharedNowMs } from './clock.mjs';
import { notificationWriter } from './notification.mjs';

/**
 * @typedef {object} Target
 * @property {string} origin
 * @property {string} path
 * @property {Record<string, string>} headers
 * @property {number} status the only good answer
 * @property {boolean} isReceiver whether it gets the same as a receiver of Heraut: a webhook-id of its own each time
 * @property {string} channel
 * @property {number} run
 * @property {number} [turns] of how many objects the notifications are, in turn
 */

/**
 * The published notifications, by number.
 * @typedef {object} Published
 * @property {number} startedMs when the first was sent, on the shared clock
 * @property {string[]} ids as answered; one that was refused has none
 * @property {Float64Array} acceptedMs from the time it was to be sent to the whole answer
 * @property {string[]} troubles of those refused, the first few
 */

const maxTroubles = 5;
/**
 * Of an open loop. More than a server can take in one go (511, by default) would measure how Linux repeats refused
 * connects.
 */
const manyConnections = 256;

/** One call; when it has ended it calls `next`. */
class Call {
  #status = 0;
  #id = '';
  #text = '';

  /**
   * @param {Sender} sender
   * @param {number} number
   * @param {number} sentMs
   * @param {() => void} next
   */
  constructor(sender, number, sentMs, next) {
    this.sender = sender;
    this.number = number;
    this.sentMs = sentMs;
    this.next = next;
  }

  onRequestStart() {}

  /**
   * @param {unknown} _
   * @param {number} status
   * @param {Record<string, string | string[] | undefined>} headers
   */
  onResponseStart(_, status, headers) {
    this.#status = status;
    const id = headers['notification-id'];
    if (typeof id === 'string') this.#id = id;
  }

  /**
   * @param {unknown} _
   * @param {Buffer} chunk
   */
  onResponseData(_, chunk) {
    if (this.#status !== this.sender.target.status) this.#text += chunk.toString();
  }

  onResponseEnd() {
    const { target, published } = this.sender;
    published.acceptedMs[this.number] = sharedNowMs() - this.sentMs;
    if (this.#status !== target.status) this.sender.complain(`${this.#status} ${this.#text}`);
    else if (!target.isReceiver) published.ids[this.number] = this.#id;
    this.next();
  }

  /**
   * @param {unknown} _
   * @param {Error} error
   */
  onResponseError(_, error) {
    if (this.sender.target.isReceiver) this.sender.published.ids[this.number] = '';
    this.sender.complain(error.message);
    this.next();
  }
}

class Sender {
  /**
   * @param {Target} target
   * @param {number} count
   * @param {number} connections
   */
  constructor(target, count, connections) {
    this.target = target;
    this.write = notificationWriter(target.channel, target.run, target.turns);
    this.pool = new Pool(target.origin, { connections, pipelining: 1, headersTimeout: 60_000, bodyTimeout: 60_000 });
    /** @type {Published} */
    this.published = {
      startedMs: sharedNowMs(),
      ids: Array.from({ length: count }, () => ''),
      acceptedMs: new Float64Array(count),
      troubles: [],
    };
  }

  /**
   * @param {number} number
   * @param {number} sentMs
   * @param {() => void} next
   */
  send(number, sentMs, next) {
    const { path, isReceiver } = this.target;
    let { headers } = this.target;
    if (isReceiver) {
      const id = `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;
      this.published.ids[number] = id;
      headers = { ...headers, 'webhook-id': id, 'webhook-attempt': '1' };
    }
    const call = new Call(this, number, sentMs, next);
    this.pool.dispatch({ path, method: 'POST', headers, body: this.write(number, sentMs) }, call);
  }

  /** @param {string} trouble */
  complain(trouble) {
    if (this.published.troubles.length < maxTroubles) this.published.troubles.push(trouble);
  }

  /** @param {number} sent */
  async finish(sent) {
    await this.pool.destroy();
    const { published } = this;
    return { ...published, ids: published.ids.slice(0, sent), acceptedMs: published.acceptedMs.slice(0, sent) };
  }
}

const handlers = {
  /**
   * Each publisher sends its next notification when the one before was answered, until the time or the count is up.
   * @param {{ target: Target, publishers: number, seconds: number, count: number }} parameter
   */
  closedLoop: async ({ target, publishers, seconds, count }) => {
    const sender = new Sender(target, count, publishers);
    const until = sharedNowMs() + seconds * 1000;
    let sent = 0;
    await new Promise((resolve) => {
      let busy = publishers;
      const next = () => {
        const now = sharedNowMs();
        if (sent < count && now < until) sender.send(sent++, now, next);
        else if (--busy === 0) resolve(undefined);
      };
      for (let publisher = 0; publisher < publishers; publisher++) next();
    });
    return sender.finish(sent);
  },

  /**
   * One notification after the other at fixed times, however long answers take. Times are counted from when each was to
   * be sent: a server, or this process, that falls behind pays for it (no coordinated omission).
   * @param {{ target: Target, ratePerSecond: number, seconds: number }} parameter
   */
  openLoop: async ({ target, ratePerSecond, seconds }) => {
    const schedule = { ratePerSecond, count: ratePerSecond * seconds };
    const alarm = new Worker(new URL('./alarm.mjs', import.meta.url), { workerData: schedule });
    await once(alarm, 'message'); // it is ready
    const sender = new Sender(target, schedule.count, manyConnections);
    const { startedMs } = sender.published;
    let answered = 0;
    /** @type {() => void} */
    let finish = () => {};
    const finished = new Promise((resolve) => (finish = () => resolve(undefined)));
    const next = () => {
      if (++answered === schedule.count) finish();
    };
    alarm.on('message', (/** @type {number} */ number) =>
      sender.send(number, dueMs(schedule, startedMs, number), next),
    );
    alarm.postMessage(startedMs);
    await finished;
    return sender.finish(schedule.count);
  },
};

/** @typedef {typeof handlers} LoadHandlers */

answerCalls(handlers);

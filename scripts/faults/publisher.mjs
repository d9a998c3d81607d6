// The publisher, in a process of its own: it publishes at a fixed rate and repeats, under the same Idempotency-Key, the
// requests that were not answered or answered with a 5xx, so that it knows in the end of every notification whether it
// was accepted.
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { answerCalls } from '../bench/child.mjs';
import { sharedNowMs } from '../bench/clock.mjs';
import { notificationWriter } from '../bench/notification.mjs';

/**
 * @typedef {object} Target
 * @property {string[]} origins of the api processes; a repetition goes to the next one
 * @property {string} token
 * @property {string} channel
 * @property {number} run
 * @property {number} objects that the notifications are about: number `n` about object `n % objects`
 */

/**
 * The results of the publications, by number.
 * @typedef {object} Published
 * @property {string[]} ids as answered with the 201; '' where there never was one
 * @property {Float64Array} acceptedMs when the 201 came, on the shared clock
 * @property {string[]} refused answers that a repetition would not change; there should be none
 */

const connectionsPerApi = 128;
/** Beyond this, an outage of the API makes the publisher wait, as a real one would. */
const maxOpen = 4000;
const patienceMs = 10_000;
const firstPauseMs = 50;
const longestPauseMs = 1000;

class Publisher {
  /** @type {string[]} */
  ids = [];
  /** @type {number[]} */
  acceptedMs = [];
  /** @type {string[]} */
  refused = [];
  stopping = false;
  givingUp = false;
  /** @type {Set<Promise<void>>} */
  open = new Set();
  /** @type {Promise<void>} */
  loop = Promise.resolve();

  /** @param {Target} target */
  constructor(target) {
    this.target = target;
    this.write = notificationWriter(target.channel, target.run, target.objects);
    this.pools = target.origins.map(
      (origin) => new Pool(origin, { connections: connectionsPerApi, pipelining: 1, connect: { timeout: patienceMs } }),
    );
  }

  /** @param {number} ratePerSecond */
  publishSteadily(ratePerSecond) {
    this.loop = (async () => {
      const startedMs = sharedNowMs();
      for (let due = 0; !this.stopping;) {
        const wanted = ((sharedNowMs() - startedMs) * ratePerSecond) / 1000;
        for (; due < wanted; due++) if (this.open.size < maxOpen) void this.add();
        await sleep(5);
      }
    })();
  }

  /**
   * One about each object at a time: the next round begins when all of the one before are accepted.
   * @param {number} ratePerSecond
   */
  publishInOrder(ratePerSecond) {
    const { objects } = this.target;
    this.loop = (async () => {
      for (let dueMs = sharedNowMs(); !this.stopping; dueMs += (objects * 1000) / ratePerSecond) {
        await sleep(Math.max(0, dueMs - sharedNowMs()));
        await Promise.all(Array.from({ length: objects }, () => this.add()));
      }
    })();
  }

  /**
   * @param {number} count
   * @param {number} publishers
   * @param {number} untilMs
   */
  async publishAtOnce(count, publishers, untilMs) {
    let left = count;
    const one = async () => {
      while (left-- > 0 && sharedNowMs() < untilMs) await this.add();
    };
    await Promise.all(Array.from({ length: publishers }, one));
  }

  add() {
    const number = this.ids.push('') - 1;
    this.acceptedMs.push(0);
    const work = this.publish(number).finally(() => this.open.delete(work));
    this.open.add(work);
    return work;
  }

  /** @param {number} number */
  async publish(number) {
    const { token, run } = this.target;
    const body = this.write(number, sharedNowMs());
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${token}`,
      'idempotency-key': `"faults-${run}-${number}"`,
    };
    for (let attempt = 0, pauseMs = firstPauseMs; !this.givingUp; attempt++) {
      const pool = /** @type {Pool} */ (this.pools[(number + attempt) % this.pools.length]);
      const answer = await call(pool, headers, body);
      if (answer.status === 201) {
        this.acceptedMs[number] = sharedNowMs();
        this.ids[number] = answer.id;
        return;
      }
      if (answer.status < 500 && answer.status !== 409) {
        if (this.refused.length < 5) this.refused.push(`${answer.status} ${answer.text}`);
        return;
      }
      await sleep(pauseMs);
      pauseMs = Math.min(longestPauseMs, pauseMs * 2);
    }
  }

  /** Does not wait for the requests in flight: the scenario broke off. */
  abandon() {
    this.stopping = true;
    this.givingUp = true;
    for (const pool of this.pools) void pool.destroy();
  }

  /** @returns {Promise<Published>} */
  async finish() {
    this.stopping = true;
    const giveUp = setTimeout(() => (this.givingUp = true), 60_000);
    await this.loop;
    await Promise.all(this.open);
    clearTimeout(giveUp);
    await Promise.all(this.pools.map((pool) => pool.destroy()));
    const { ids, refused } = this;
    return { ids, acceptedMs: Float64Array.from(this.acceptedMs), refused };
  }
}

/**
 * @param {Pool} pool
 * @param {Record<string, string>} headers
 * @param {Buffer} body
 * @returns {Promise<{ status: number, id: string, text: string }>} status 599 where there was no answer
 */
async function call(pool, headers, body) {
  try {
    const response = await pool.request({
      path: '/api/v1/notificaties',
      method: 'POST',
      headers,
      body,
      headersTimeout: patienceMs,
      bodyTimeout: patienceMs,
    });
    const text = await response.body.text();
    const id = response.headers['notification-id'];
    return { status: response.statusCode, id: typeof id === 'string' ? id : '', text };
  } catch (error) {
    return { status: 599, id: '', text: String(error) };
  }
}

/** @type {Publisher | undefined} */
let publisher;
const current = () => {
  if (!publisher) throw new Error('begin first');
  return publisher;
};

const handlers = {
  /** @param {Target} target */
  begin: (target) => {
    publisher?.abandon();
    publisher = new Publisher(target);
  },

  /** Until `finish`. @param {number} ratePerSecond */
  steadily: (ratePerSecond) => current().publishSteadily(ratePerSecond),

  /** Until `finish`, and never two about the same object at the same time. @param {number} ratePerSecond at most */
  inOrder: (ratePerSecond) => current().publishInOrder(ratePerSecond),

  /**
   * Each publisher sends its next notification when the one before was accepted. Resolves when all are.
   * @param {{ count: number, publishers: number, seconds: number }} parameter
   */
  atOnce: ({ count, publishers, seconds }) =>
    current().publishAtOnce(count, publishers, sharedNowMs() + seconds * 1000),

  accepted: () => current().ids.filter((id) => id !== '').length,

  /**
   * Publishes nothing new; resolves when it is known of every notification whether it was accepted, or after a minute.
   */
  finish: () => current().finish(),
};

/** @typedef {typeof handlers} FaultsPublisher */

answerCalls(handlers);

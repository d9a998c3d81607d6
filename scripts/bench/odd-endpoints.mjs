// Callback URLs of receivers in trouble, or not yet in trouble, with a subscription each.
import { setTimeout as sleep } from 'node:timers/promises';
import { channels, organizationOf } from './notification.mjs';

/** @typedef {import('./child.mjs').Child<import('./odd-receivers.mjs').OddReceiversHandlers>} OddReceivers */

/**
 * The endpoints beside the healthy one, and what is the matter with them. `hanging-later`: they have answered well
 * before. `answering-late`: they answer well after most of the time that a call may take, so no breaker opens.
 * @typedef {object} Row
 * @property {Kind} kind
 * @property {number} endpoints callback URLs
 * @property {number} origins that they are spread over
 */

export const kinds = /** @type {const} */ ([
  'hanging',
  'hanging-later',
  'answering-late',
  'resetting',
  'failing',
  'refusing',
  'not-accepting',
  'burst',
]);
/** @typedef {typeof kinds[number]} Kind */

/** @type {Row[]} */
export const rows = [
  ...[1, 20, 50, 200].map((endpoints) => ({ kind: /** @type {const} */ ('hanging'), endpoints, origins: endpoints })),
  { kind: 'hanging-later', endpoints: 50, origins: 50 },
  { kind: 'answering-late', endpoints: 50, origins: 50 },
  { kind: 'resetting', endpoints: 20, origins: 20 },
  { kind: 'failing', endpoints: 20, origins: 20 },
  { kind: 'refusing', endpoints: 64, origins: 1 },
  { kind: 'not-accepting', endpoints: 64, origins: 1 },
  { kind: 'burst', endpoints: 1, origins: 1 },
];

/** @type {Partial<Record<Kind, import('./odd-receivers.mjs').Behaviour>>} */
const behaviours = {
  hanging: 'hang',
  'hanging-later': 'hang',
  'answering-late': 'late',
  resetting: 'reset',
  failing: 'fail',
  refusing: 'away',
};
/** A process that was frozen resets what waited for it meanwhile, before it answers again. */
const thawingMs = 500;

export class OddEndpoints {
  /** @type {string[]} */
  #subscriptions = [];

  /**
   * @param {OddReceivers} receivers
   * @param {import('./installation.mjs').Installation} installation
   * @param {number} [backlog] connections that wait to be accepted; more are not even made while the process is frozen
   */
  constructor(receivers, installation, backlog) {
    this.receivers = receivers;
    this.installation = installation;
    this.backlog = backlog;
  }

  /**
   * All of them answer well. Notifications that take turns reach them in turn.
   * @param {{ endpoints: number, origins: number }} row
   * @returns {Promise<{ subscription: string, callbackUrl: string }[]>} `subscription`: its URL
   */
  async subscribe({ endpoints, origins }) {
    const urls = await this.receivers.call('open', { origins, backlog: this.backlog });
    const made = [];
    for (let number = 0; number < endpoints; number++) {
      const callbackUrl = `${urls[number % origins]}/${number}`;
      const wish = {
        channel: channels.others,
        callbackUrl,
        filters: { bronorganisatie: organizationOf(number) },
        guarantee: 'at-least-once', // at most once, a call that hangs is never made again
      };
      const subscription = await this.installation.subscribe(wish);
      this.#subscriptions.push(subscription);
      made.push({ subscription, callbackUrl });
    }
    return made;
  }

  async unsubscribe() {
    for (const subscription of this.#subscriptions.splice(0)) await this.installation.unsubscribe(subscription);
  }

  /** @param {Kind} kind */
  async beginTrouble(kind) {
    const behaviour = behaviours[kind];
    if (behaviour) return await this.receivers.call('behave', behaviour);
    await this.receivers.call('behave', 'reset');
    process.kill(this.receivers.pid, 'SIGSTOP');
  }

  /**
   * @param {Kind} kind
   * @param {number} run
   * @returns its progress right before the end
   */
  async endTrouble(kind, run) {
    if (!behaviours[kind]) {
      process.kill(this.receivers.pid, 'SIGCONT');
      await sleep(thawingMs);
    }
    const progress = await this.receivers.call('progress', run);
    await this.receivers.call('behave', 'well');
    return progress;
  }
}

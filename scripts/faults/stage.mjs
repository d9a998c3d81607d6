// Where a scenario is played: a fresh Heraut with two subscriptions of one receiver, one for each strategy, a
// publisher, and the parts that can be broken.
import { setTimeout as sleep } from 'node:timers/promises';
import { sharedNowMs } from '../bench/clock.mjs';
import { countKeys, countLocked, lockedBy } from './locks.mjs';

/** @typedef {import('../bench/child.mjs').Child<import('./receiver.mjs').CheckingReceiver>} Receiver */
/** @typedef {import('../bench/child.mjs').Child<import('./publisher.mjs').FaultsPublisher>} Publisher */
/** @typedef {import('./cluster.mjs').Cluster} Cluster */
/** @typedef {import('./ledger-view.mjs').LedgerView} LedgerView */
/** @typedef {import('./postgres-proxy.mjs').PostgresProxy} PostgresProxy */
/** @typedef {import('../random.mjs').Random} Random */
/** @typedef {import('./cluster.mjs').Role} Role */
/** @typedef {import('./reckoning.mjs').Reckoning} Reckoning */

/**
 * @typedef {object} Scenario
 * @property {string} name
 * @property {boolean} [needsServers] breaks servers, which must then be its own
 * @property {Record<string, string>} [settings]
 * @property {boolean} [together] every process has every role, and hands over what it accepts to its own worker
 * @property {boolean} [supervised] the same, but the processes are those of one supervisor (PROCESSES), and hand over to each other
 * @property {boolean} [viaProxy] Heraut reaches Postgres by way of `stage.proxy`
 * @property {number} [answerAfterMs] the receiver's time for an answer
 * @property {boolean} [learnsAll] it breaks nothing by which the outcome of a call would never be learnt
 * @property {number} [quietWithinMs] how long after the end it may take until every delivery is over
 * @property {number} [recoversWithinMs] from the 201 to the first arrival, without the time in which something was broken
 * @property {number} [mostPerSecond] notifications
 * @property {number} [objects] that the notifications are about; then the subscriptions ask for order per object
 * @property {(stage: Stage) => void} [prepare] before anything starts
 * @property {(stage: Stage) => Promise<void>} [breakThings] while the publisher publishes; everything is healed afterwards
 * @property {(stage: Stage) => Promise<void>} [afterwards] when every delivery is over
 * @property {(stage: Stage) => Promise<void>} [play] in place of the steady load, for those that publish in their own way
 */

/**
 * @typedef {object} Environment
 * @property {Record<Role, number>} counts processes of each role, where a process has one
 * @property {Record<string, string>} settings where the servers are, for Heraut; everything there is fresh
 * @property {import('./servers.mjs').FaultyServers | undefined} servers undefined where they are not to be broken
 * @property {Receiver} receiver
 * @property {string} receiverUrl
 * @property {Publisher} publisher
 * @property {number} run from 0 to 99, never twice with the same receiver
 * @property {string} directory for logs
 * @property {(line: string) => void} tellGuardian
 * @property {number} seed
 * @property {number} ratePerSecond
 * @property {import('./pace.mjs').Pace} pace
 * @property {(line: string) => void} log
 */

/**
 * @typedef {object} Result
 * @property {string} name
 * @property {Reckoning[]} reckonings one for each strategy
 * @property {number} deliveriesPerSecond from the first publication to the last arrival
 * @property {string[]} wrong sentences; none where everything is as promised
 */

/**
 * At-least-once deliveries that processes have not ended, by notification.
 * @typedef {object} Held
 * @property {string[]} locked they may be on their way
 * @property {string[]} inHand without a lock: they may be on their way, or not have begun
 */

/** After the last arrival, for a second one of the same. */
const latecomersMs = 2000;

export class Stage {
  /** @type {import('./reckoning.mjs').Fault[]} */
  faults = [];
  /**
   * At-least-once deliveries that were in flight when a fault struck for all: so many may come again, whichever they
   * are.
   */
  inFlight = 0;
  /** Those that a process had in flight that was killed or stood still, by notification: how often each may come again. @type {Map<string, number>} */
  again = new Map();
  /** @type {string[]} */
  wrong = [];
  /** One for each strategy. @type {string[]} */
  subscriptionIds = [];
  #breaking = 0;

  /**
   * @param {Environment} environment
   * @param {Cluster} cluster
   * @param {PostgresProxy} proxy
   * @param {LedgerView} ledger
   * @param {Random} random
   * @param {boolean} isTogether what a process accepts, it hands over to its own worker, which has no lock for it
   */
  constructor(environment, cluster, proxy, ledger, random, isTogether) {
    this.environment = environment;
    this.cluster = cluster;
    this.proxy = proxy;
    this.ledger = ledger;
    this.random = random;
    this.isTogether = isTogether;
  }

  get receiver() {
    return this.environment.receiver;
  }

  get publisher() {
    return this.environment.publisher;
  }

  get servers() {
    if (!this.environment.servers) throw new Error('This scenario needs servers of its own.');
    return this.environment.servers;
  }

  /**
   * Everything until `work` is through counts as broken; it breaks something and heals it. @param {() => Promise<void>}
   * work
   */
  async whileBroken(work) {
    if (this.#breaking === 0) this.faults.push({ fromMs: sharedNowMs(), toMs: Infinity });
    this.#breaking += 1;
    await work();
    this.#breaking -= 1;
    const fault = this.faults.at(-1);
    if (this.#breaking === 0 && fault) fault.toMs = sharedNowMs();
  }

  /**
   * To be called at a fault that ends the locks of all: a delivery that a worker has locked and not sealed may be on
   * its way, or have arrived without a record of it.
   */
  async noteLocked() {
    const isInRedis = (await this.ledger.locksAreIn()) === 'redis';
    this.inFlight += isInRedis ? await countLocked(this.#redisUrl) : (await this.ledger.lockedAndSealed()).locked;
  }

  /**
   * Of processes that stand still, and are killed perhaps: what each of them has locked and not sealed. One that was
   * handed over has no lock at first, but is in the hand of its process. Deliveries that others have in flight must not
   * come again because of that.
   * @param {number[]} pids
   * @returns {Promise<Held>}
   */
  async heldBy(pids) {
    const processIds = await this.ledger.processIds(pids);
    const isInRedis = (await this.ledger.locksAreIn()) === 'redis';
    const keys = isInRedis ? await lockedBy(this.#redisUrl, processIds) : await this.ledger.lockedBy(processIds);
    const inHand = this.isTogether ? await this.ledger.inHandOf(this.#atLeastOnce, processIds) : [];
    return { locked: notificationsOf(keys, this.#atLeastOnce), inHand };
  }

  /**
   * To be called when what they had sent has had time to arrive. It may come again, once for this fault.
   * @param {Held} held
   */
  async mayComeAgain({ locked, inHand }) {
    const arrived = await this.receiver.call('arrived', { subscription: 0, ids: inHand });
    for (const id of new Set([...locked, ...arrived])) this.again.set(id, (this.again.get(id) ?? 0) + 1);
  }

  /** The receiver goes down, and comes back after `work`. @param {() => Promise<void>} work */
  async whileReceiverIsDown(work) {
    await this.whileBroken(async () => {
      this.inFlight += (await this.receiver.call('down', undefined))[0] ?? 0;
      await work();
      await this.receiver.call('up', undefined);
    });
  }

  /** @param {string} event */
  async hasLogged(event) {
    return (await this.cluster.readLogs()).events.has(event);
  }

  /** Whether a rule of the dispatcher has found something. @param {string} rule */
  async hasRecovered(rule) {
    return (await this.cluster.readLogs()).rules.has(rule);
  }

  /** @param {string} event */
  async untilLogged(event) {
    await this.until(`${event} in a log`, () => this.hasLogged(event));
  }

  /** Until the circuit breaker of the receiver is open. */
  async untilParked() {
    await this.until('the endpoint to be parked', async () => (await this.ledger.openEndpoints()).length > 0);
  }

  /** Until deliveries are locked and sealed in Postgres. */
  async untilRedisIsGivenUp() {
    await this.until('Redis to be given up', async () => (await this.ledger.lockedAndSealed()).sealed > 0);
  }

  /** Until deliveries are locked and sealed in Redis again. */
  async untilRedisIsBack() {
    await this.until('locks to return to Redis', async () => (await this.ledger.locksAreIn()) === 'redis');
    const before = await countKeys(this.#redisUrl);
    await this.until('new keys in Redis', async () => (await countKeys(this.#redisUrl)) > before);
  }

  get #atLeastOnce() {
    return /** @type {string} */ (this.subscriptionIds[0]);
  }

  get #redisUrl() {
    return /** @type {string} */ (this.environment.settings.REDIS_URL);
  }

  /**
   * @param {string} what
   * @param {() => Promise<boolean>} isTrue
   */
  async until(what, isTrue) {
    for (const giveUpAt = sharedNowMs() + 90_000; sharedNowMs() < giveUpAt; await sleep(100))
      if (await isTrue()) return;
    throw new Error(`waited 90 s in vain for ${what}`);
  }

  /** Counts deliveries that have arrived without the ledger knowing. */
  async noteUnsettled() {
    this.inFlight += await this.#countUnsettled();
  }

  async #countUnsettled() {
    const settled = await this.ledger.delivered(this.#atLeastOnce);
    const { different } = await this.receiver.call('progress', undefined);
    return Math.max(0, (different[0] ?? 0) - settled);
  }

  /**
   * A pause whose length the seed decides.
   * @param {number} minMs
   * @param {number} maxMs
   */
  async pause(minMs, maxMs) {
    await sleep(this.random.between(minMs, maxMs));
  }

  /**
   * Until nothing is on its way any more. @param {number} withinMs
   * @returns {Promise<boolean>}
   */
  async untilQuiet(withinMs) {
    const giveUpAt = sharedNowMs() + withinMs;
    for (;;) {
      const unfinished = await this.ledger.unfinished();
      const { lastMs } = await this.receiver.call('progress', undefined);
      if (unfinished.size === 0 && sharedNowMs() - lastMs > latecomersMs) return true;
      if (sharedNowMs() > giveUpAt) {
        const states = [...unfinished].map(([state, count]) => `${count} ${state}`).join(', ');
        this.wrong.push(`after ${withinMs / 1000} s not every delivery is over: ${states || 'they still arrive'}`);
        return false;
      }
      await sleep(250);
    }
  }
}

/**
 * @param {string[]} keys as Heraut names them: `i9y:delivery:<notification>:<subscription>`, and more for a replay
 * @param {string} subscriptionId
 */
function notificationsOf(keys, subscriptionId) {
  return keys.flatMap((key) => {
    const [, , notificationId = '', subscription] = key.split(':');
    return subscription === subscriptionId ? [notificationId] : [];
  });
}

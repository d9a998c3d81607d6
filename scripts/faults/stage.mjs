// Where a scenario is played: a fresh Heraut with two subscriptions of one receiver, one for each strategy, a publisher, and
// the parts that can be broken.
import { setTimeout as sleep } from 'node:timers/promises';
import { sharedNowMs } from '../bench/clock.mjs';
import { filters } from '../bench/notification.mjs';
import { Cluster } from './cluster.mjs';
import { countKeys, countLocked } from './locks.mjs';
import { LedgerView } from './ledger-view.mjs';
import { PostgresProxy } from './postgres-proxy.mjs';
import { Random } from './random.mjs';
import { reckon } from './reckoning.mjs';

/** @typedef {import('../bench/child.mjs').Child<import('./receiver.mjs').CheckingReceiver>} Receiver */
/** @typedef {import('../bench/child.mjs').Child<import('./publisher.mjs').FaultsPublisher>} Publisher */
/** @typedef {import('./cluster.mjs').Member} Member */
/** @typedef {import('./cluster.mjs').Role} Role */
/** @typedef {import('./reckoning.mjs').Reckoning} Reckoning */

/**
 * @typedef {object} Scenario
 * @property {string} name
 * @property {boolean} [needsServers] breaks servers, which must then be its own
 * @property {Record<string, string>} [settings]
 * @property {boolean} [viaProxy] Heraut reaches Postgres by way of `stage.proxy`
 * @property {number} [answerAfterMs] the receiver's time for an answer
 * @property {number} [quietWithinMs] how long after the end it may take until every delivery is over
 * @property {(stage: Stage) => void} [prepare] before anything starts
 * @property {(stage: Stage) => Promise<void>} [breakThings] while the publisher publishes; everything is healed afterwards
 * @property {(stage: Stage) => Promise<void>} [play] in place of the steady load, for those that publish in their own way
 */

/**
 * @typedef {object} Environment
 * @property {Record<Role, number>} counts processes of each role
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
 * @property {import('./scenarios.mjs').Pace} pace
 * @property {(line: string) => void} log
 */

/**
 * @typedef {object} Result
 * @property {string} name
 * @property {Reckoning[]} reckonings one for each strategy
 * @property {number} handedOutAgain
 * @property {number} repeatedPublications
 * @property {number} deliveriesPerSecond from the first publication to the last arrival
 * @property {string[]} wrong sentences; none where everything is as promised
 */

/** @type {import('./reckoning.mjs').Strategy[]} */
const strategies = ['at-least-once', 'at-most-once'];
const channel = 'faults';
/**
 * As short as the checks at start allow, so that everything that ends by itself does so within seconds. A recovery by the end
 * of a lease lasts as long as the lease: with the defaults three minutes.
 */
const hurriedSettings = {
  TTL_LOCK_TIME_LIMIT_MS: '3000',
  NOTIFICATION_REQUESTS_TIMEOUT: '4',
  DELIVERY_LEASE_MS: '18000',
  LOG_LEVEL: 'info',
};
/** Outlasts every scenario: with it, a delivery that fails for good is a loss. */
const patientPolicy = { maxRetries: 100, backoffFactor: 0.5, baseFactor: 2, maxDelaySeconds: 5, jitter: 0 };
/** After the last arrival, for a second one of the same. */
const latecomersMs = 2000;

export class Stage {
  /** @type {import('./reckoning.mjs').Fault[]} */
  faults = [];
  /** At-least-once deliveries that were in flight when a fault struck: so many may come again. */
  inFlight = 0;
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
   */
  constructor(environment, cluster, proxy, ledger, random) {
    this.environment = environment;
    this.cluster = cluster;
    this.proxy = proxy;
    this.ledger = ledger;
    this.random = random;
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

  /** Everything until `work` is through counts as broken; it breaks something and heals it. @param {() => Promise<void>} work */
  async whileBroken(work) {
    if (this.#breaking === 0) this.faults.push({ fromMs: sharedNowMs(), toMs: Infinity });
    this.#breaking += 1;
    await work();
    this.#breaking -= 1;
    const fault = this.faults.at(-1);
    if (this.#breaking === 0 && fault) fault.toMs = sharedNowMs();
  }

  /**
   * To be called at a fault that ends a worker or its locks: a delivery that a worker has locked and not sealed may be on its
   * way, or have arrived without a record of it.
   */
  async noteLocked() {
    const isInRedis = (await this.ledger.locksAreIn()) === 'redis';
    this.inFlight += isInRedis ? await countLocked(this.#redisUrl) : (await this.ledger.lockedAndSealed()).locked;
  }

  /** Until deliveries are locked and sealed in Postgres. */
  async untilRedisIsGivenUp() {
    await this.#until('Redis to be given up', async () => (await this.ledger.lockedAndSealed()).sealed > 0);
  }

  /** Until deliveries are locked and sealed in Redis again. */
  async untilRedisIsBack() {
    await this.#until('locks to return to Redis', async () => (await this.ledger.locksAreIn()) === 'redis');
    const before = await countKeys(this.#redisUrl);
    await this.#until('new keys in Redis', async () => (await countKeys(this.#redisUrl)) > before);
  }

  get #redisUrl() {
    return /** @type {string} */ (this.environment.settings.REDIS_URL);
  }

  /**
   * @param {string} what
   * @param {() => Promise<boolean>} isTrue
   */
  async #until(what, isTrue) {
    for (const giveUpAt = sharedNowMs() + 90_000; sharedNowMs() < giveUpAt; await sleep(100))
      if (await isTrue()) return;
    throw new Error(`waited 90 s in vain for ${what}`);
  }

  /** For a fault that also empties Redis: counts deliveries that have arrived without the ledger knowing. */
  async noteUnsettled() {
    const settled = await this.ledger.delivered(/** @type {string} */ (this.subscriptionIds[0]));
    const { different } = await this.receiver.call('progress', undefined);
    this.inFlight += Math.max(0, (different[0] ?? 0) - settled);
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
 * @param {Scenario} scenario
 * @param {Environment} environment
 * @returns {Promise<Result>}
 */
export async function playScenario(scenario, environment) {
  const { settings, directory, tellGuardian, receiver, publisher, run, seed, log } = environment;
  const proxy = new PostgresProxy(/** @type {string} */ (settings.DATABASE_URL));
  await proxy.start();
  const cluster = await Cluster.create({
    counts: environment.counts,
    settings: {
      ...settings,
      ...(scenario.viaProxy ? { DATABASE_URL: proxy.url } : {}),
      ...hurriedSettings,
      ...scenario.settings,
    },
    directory,
    tellGuardian,
  });
  const ledger = new LedgerView(/** @type {string} */ (settings.DATABASE_URL));
  const stage = new Stage(environment, cluster, proxy, ledger, new Random(seed, scenario.name));
  try {
    scenario.prepare?.(stage);
    await cluster.start();
    const { answerAfterMs = 10 } = scenario;
    await receiver.call('begin', { run, subscriptions: strategies.length, answerAfterMs });
    stage.subscriptionIds = await subscribe(cluster, environment.receiverUrl);
    const origins = cluster.of('api').map((member) => member.url);
    await publisher.call('begin', { origins, token: cluster.token, channel, run });
    const startedMs = sharedNowMs();

    if (scenario.play) await scenario.play(stage);
    else await playUnderLoad(scenario, stage);

    const crashed = await cluster.heal();
    const published = await publisher.call('finish', undefined);
    await stage.untilQuiet(scenario.quietWithinMs ?? 120_000);

    const { arrivals, strange } = await receiver.call('result', undefined);
    const { lastMs } = await receiver.call('progress', undefined);
    const { events, output } = await cluster.readLogs();
    log(
      `${scenario.name}: ${[...events]
        .filter(([event]) => isTelling(event))
        .map(([event, times]) => `${event} ${times}`)
        .join(', ')}`,
    );
    const reckonings = [];
    for (const [index, strategy] of strategies.entries()) {
      reckonings.push(
        reckon({
          strategy,
          published,
          arrivals: /** @type {import('./receiver.mjs').Arrivals} */ (arrivals[index]),
          ledger: await ledger.deliveriesOf(/** @type {string} */ (stage.subscriptionIds[index])),
          faults: stage.faults,
          allowedDuplicates: stage.inFlight,
        }),
      );
    }
    const arrivedInAll = arrivals.reduce((sum, { numbers }) => sum + numbers.length, 0);
    return {
      name: scenario.name,
      reckonings,
      handedOutAgain: await ledger.handedOutAgain(),
      repeatedPublications: published.repeated,
      deliveriesPerSecond: (arrivedInAll * 1000) / (lastMs - startedMs),
      wrong: [
        ...stage.wrong,
        ...crashed.map((name) => `${name} ended by itself`),
        ...output.slice(0, 5).map((line) => `printed by ${line}`),
        ...published.refused.map((answer) => `a publication was refused: ${answer}`),
        ...(published.ids.includes('') ? ['a publication was not accepted within a minute of the end'] : []),
        ...(strange > 0 ? [`${strange} calls were none of this scenario's`] : []),
        ...((events.get('delivery.broken') ?? 0) > 0
          ? ['a delivery broke on a bug: see delivery.broken in the logs']
          : []),
        ...reckonings.flatMap(({ wrong }) => wrong),
      ],
    };
  } finally {
    await cluster.end();
    await proxy.stop();
  }
}

/** Whether an event shows how Heraut handled a fault. @param {string} event */
const isTelling = (event) =>
  /^(delivery\.(filtered|unknown|postponed|broken)|idempotency\.|queue\.|dispatcher\.|notification\.(replayed|not-committed))/.test(
    event,
  );

/**
 * @param {Scenario} scenario
 * @param {Stage} stage
 */
async function playUnderLoad(scenario, stage) {
  const { publisher, environment } = stage;
  await publisher.call('steadily', environment.ratePerSecond);
  await stage.pause(1500, 2500);
  await scenario.breakThings?.(stage);
  await stage.pause(1500, 2500);
}

/**
 * @param {Cluster} cluster
 * @param {string} receiverUrl
 * @returns {Promise<string[]>} the subscriptions' ids, one for each strategy
 */
async function subscribe(cluster, receiverUrl) {
  await cluster.call('PUT', '/admin/v1/retry-policy', patientPolicy);
  await cluster.call('POST', '/api/v1/kanaal', { naam: channel, filters });
  const ids = [];
  for (const [index, deliveryGuarantee] of strategies.entries()) {
    const created = /** @type {{ url: string }} */ (
      await cluster.call('POST', '/api/v1/abonnement', {
        callbackUrl: `${receiverUrl}/${index}`,
        auth: 'Bearer faults',
        kanalen: [{ naam: channel }],
        deliveryGuarantee,
      })
    );
    ids.push(created.url.slice(created.url.lastIndexOf('/') + 1));
  }
  return ids;
}

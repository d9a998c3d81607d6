// One scenario from its start to its figures.
import { sharedNowMs } from '../bench/clock.mjs';
import { filters } from '../bench/notification.mjs';
import { Cluster } from './cluster.mjs';
import { LedgerView } from './ledger-view.mjs';
import { PostgresProxy } from './postgres-proxy.mjs';
import { Random } from '../random.mjs';
import { reckon } from './reckoning.mjs';
import { Stage } from './stage.mjs';

/** @typedef {import('./stage.mjs').Scenario} Scenario */
/** @typedef {import('./stage.mjs').Environment} Environment */
/** @typedef {import('./stage.mjs').Result} Result */

/** @type {import('./reckoning.mjs').Strategy[]} */
const strategies = ['at-least-once', 'at-most-once'];
const channel = 'faults';
/**
 * As short as the checks at start allow, so that everything that ends by itself does so within seconds. A recovery by
 * the end of a lease lasts as long as the lease: with the defaults three minutes.
 */
const hurriedSettings = {
  TTL_LOCK_TIME_LIMIT_MS: '3000',
  NOTIFICATION_REQUESTS_TIMEOUT: '4',
  DELIVERY_LEASE_MS: '18000',
  LOG_LEVEL: 'info',
};
/** Outlasts every scenario: with it, a delivery that fails for good is a loss. */
const patientPolicy = { maxRetries: 100, backoffFactor: 0.5, baseFactor: 2, maxDelaySeconds: 5, jitter: 0 };
/** Where each has every role. */
const processesTogether = 2;

/**
 * @param {Scenario} scenario
 * @param {Environment} environment
 * @returns {Promise<Result>}
 */
export async function playScenario(scenario, environment) {
  const { settings, directory, tellGuardian, receiver, publisher, run, seed, log } = environment;
  const isTogether = scenario.together === true || scenario.supervised === true;
  const proxy = new PostgresProxy(/** @type {string} */ (settings.DATABASE_URL));
  await proxy.start();
  const cluster = await Cluster.create({
    counts: isTogether ? { 'api,worker,dispatcher': scenario.supervised ? 1 : processesTogether } : environment.counts,
    settings: {
      ...settings,
      ...(scenario.viaProxy ? { DATABASE_URL: proxy.url } : {}),
      ...hurriedSettings,
      ...(scenario.supervised ? { PROCESSES: String(processesTogether) } : {}),
      ...scenario.settings,
    },
    directory,
    tellGuardian,
  });
  const ledger = new LedgerView(/** @type {string} */ (settings.DATABASE_URL));
  const stage = new Stage(environment, cluster, proxy, ledger, new Random(seed, scenario.name), isTogether);
  try {
    scenario.prepare?.(stage);
    await cluster.start();
    const { answerAfterMs = 10, objects = 1 } = scenario;
    await receiver.call('begin', { run, subscriptions: strategies.length, answerAfterMs, objects });
    stage.subscriptionIds = await subscribe(cluster, environment.receiverUrl);
    if (scenario.objects) await askForOrder(cluster, stage.subscriptionIds);
    const origins = cluster.of('api').map((member) => member.url);
    await publisher.call('begin', { origins, token: cluster.token, channel, run, objects });
    const startedMs = sharedNowMs();

    if (scenario.play) await scenario.play(stage);
    else await playUnderLoad(scenario, stage);

    await cluster.heal();
    const published = await publisher.call('finish', undefined);
    await stage.untilQuiet(scenario.quietWithinMs ?? 120_000);
    await scenario.afterwards?.(stage);

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
          again: stage.again,
          inFlight: stage.inFlight,
          isInOrder: scenario.objects !== undefined,
          mayBeUnknown: !scenario.learnsAll,
          recoversWithinMs: scenario.recoversWithinMs,
        }),
      );
    }
    const arrivedInAll = arrivals.reduce((sum, { numbers }) => sum + numbers.length, 0);
    return {
      name: scenario.name,
      reckonings,
      deliveriesPerSecond: (arrivedInAll * 1000) / (lastMs - startedMs),
      wrong: [
        ...stage.wrong,
        ...(await cluster.wrongEndings()),
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
  /^(endpoint\.|delivery\.(filtered|unknown|postponed|broken)|idempotency\.|queue\.|dispatcher\.|notification\.(replayed|not-committed))/.test(
    event,
  );

/**
 * @param {Scenario} scenario
 * @param {Stage} stage
 */
async function playUnderLoad(scenario, stage) {
  const { publisher, environment } = stage;
  const ratePerSecond = Math.min(environment.ratePerSecond, scenario.mostPerSecond ?? Infinity);
  await publisher.call(scenario.objects ? 'inOrder' : 'steadily', ratePerSecond);
  await stage.pause(1500, 2500);
  await scenario.breakThings?.(stage);
  await stage.pause(1500, 2500);
}

/**
 * @param {Cluster} cluster
 * @param {string[]} subscriptionIds
 */
async function askForOrder(cluster, subscriptionIds) {
  for (const id of subscriptionIds) {
    await cluster.call('PATCH', `/admin/v1/subscriptions/${id}`, { ordering: 'per-object' });
  }
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

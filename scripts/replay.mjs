// `npm run replay`: sends many dead letters again at a rate, kills the dispatcher with SIGKILL on the way, and compares
// what each receiver got with what it had missed. Then it counts a large ledger in a dry run, and the dead letters
// there in groups.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { describeMachine } from './bench/report.mjs';
import { readCommandLine, wholeNumber } from './command-line.mjs';
import { runCommand } from './command.mjs';
import { Cluster } from './faults/cluster.mjs';
import { makeGuardedDirectory, startPrivateServers } from './private-servers.mjs';
import { makeReady } from './ready-to-run.mjs';
import { MissingLedger } from './replay/missing-ledger.mjs';
import { Receivers } from './replay/receivers.mjs';

const usage = `npm run replay -- [options]

  --deliveries N  dead letters, about (100000)
  --rate N        deliveries a second (500)
  --kills N       times that the dispatcher is killed on the way (2)
  --ledger N      deliveries that are then counted by a dry run (1000000)
  --help`;

const channel = 'replay';
const subscriptionCount = 4;
/** Of the time that the rate asks for: a replay that has not ended by then does not go on. */
const givenUpAfter = 3;
/** Starting the dispatcher again, and the calls of the last deliveries. */
const besidesMs = 60_000;
/** By how much of it the replay may take longer, or shorter, than its rate says. */
const tolerance = 0.1;
/** By how much longer for each kill: until the dispatcher is started again, and has found the replay. */
const secondsPerKill = 3;
const dryRunWithinMs = 5000;

await runCommand(async ({ log, onEnd }) => {
  const options = readCommandLine(usage, () =>
    parseArgs({
      options: {
        deliveries: { type: 'string', default: '100000' },
        rate: { type: 'string', default: '500' },
        kills: { type: 'string', default: '2' },
        ledger: { type: 'string', default: '1000000' },
        help: { type: 'boolean' },
      },
    }),
  );
  const deliveries = wholeNumber(usage, 'deliveries', options.deliveries, 100, 10_000_000);
  const rate = wholeNumber(usage, 'rate', options.rate, 1, 10_000);
  const kills = wholeNumber(usage, 'kills', options.kills, 0, 20);
  const ledgerRows = wholeNumber(usage, 'ledger', options.ledger, 0, 10_000_000);
  await makeReady(log);

  const { directory, tellGuardian, remove } = makeGuardedDirectory('replay');
  onEnd(remove);
  const machine = describeMachine(directory);
  const servers = await startPrivateServers(log);
  onEnd(() => servers.stop());
  const receivers = new Receivers(subscriptionCount);
  const origin = await receivers.listen();
  onEnd(() => receivers.stop());
  const cluster = await Cluster.create({
    counts: { api: 1, worker: 1, dispatcher: 1 },
    settings: {
      DATABASE_URL: servers.postgres.url,
      AMQP_URL: servers.rabbitmq.url,
      REDIS_URL: servers.redis.url,
      CALLBACK_ALLOWED_NETWORKS: '127.0.0.0/8', // the receivers are on this machine
      TEST_CALLBACK_AUTH: 'false',
    },
    directory,
    tellGuardian,
  });
  onEnd(() => cluster.end());
  await cluster.start();

  await cluster.call('POST', '/api/v1/kanaal', { naam: channel, filters: [] });
  /** @type {string[]} */
  const subscriptionIds = [];
  for (let number = 0; number < subscriptionCount; number++) {
    const abonnement = { callbackUrl: `${origin}/${number}`, auth: 'Bearer replay', kanalen: [{ naam: channel }] };
    const { url } = /** @type {{ url: string }} */ (await cluster.call('POST', '/api/v1/abonnement', abonnement));
    subscriptionIds.push(url.slice(url.lastIndexOf('/') + 1));
  }
  const ledger = new MissingLedger(servers.postgres.url);
  const notifications = Math.ceil((deliveries * 2) / subscriptionCount);
  log(`filling the ledger: ${notifications} notifications for ${subscriptionCount} subscriptions …`);
  const subscribers = await ledger.fill({ notifications, subscriptionIds, channel });
  const missed = subscribers.reduce((sum, each) => sum + each.missed.size, 0);

  /** @typedef {{ id: string, state: string, done: number, found: number, startedAt: string, endedAt: string }} Replay */
  const selection = { subscriptions: subscriptionIds };
  const { count } = /** @type {{ count: number }} */ (
    await cluster.call('POST', '/admin/v1/replays/dry-run', { selection })
  );
  const wanted = { selection, ratePerSecond: rate, confirm: count, note: 'npm run replay' };
  const created = /** @type {Replay} */ (await cluster.call('POST', '/admin/v1/replays', wanted));
  log(`the dry run counts ${count}; the replay ${created.id} begins, at ${rate} a second`);

  const dispatcher = /** @type {import('./faults/cluster.mjs').Member} */ (cluster.of('dispatcher')[0]);
  const read = async () => /** @type {Replay} */ (await cluster.call('GET', `/admin/v1/replays/${created.id}`));
  let inFlight = 0;
  let killed = 0;
  let replay = await read();
  const giveUpAt = performance.now() + (givenUpAfter * missed * 1000) / rate + besidesMs;
  for (let shownAt = 0; replay.state !== 'done'; replay = await read()) {
    if (replay.endedAt) throw new Error(`the replay has ended as ${replay.state}, with ${replay.done} of ${missed}`);
    if (performance.now() > giveUpAt) throw new Error(`the replay does not end: ${replay.done} of ${missed} are done`);
    const [wrongEnding] = await cluster.wrongEndings();
    if (wrongEnding !== undefined) throw new Error(wrongEnding);
    if (killed < kills && replay.done >= ((killed + 1) * missed) / (kills + 1)) {
      await dispatcher.kill9();
      inFlight += await ledger.inFlight();
      killed += 1;
      log(`killed the dispatcher (SIGKILL) at ${replay.done} of ${missed}`);
      await sleep(300);
      await dispatcher.start();
    }
    if (performance.now() - shownAt > 10_000) {
      shownAt = performance.now();
      log(`${replay.state}: ${replay.done} of ${missed}`);
    }
    await sleep(100);
  }
  for (let unfinished = await ledger.unfinished(); unfinished > 0; unfinished = await ledger.unfinished()) {
    if (performance.now() > giveUpAt) throw new Error(`${unfinished} deliveries do not end`);
    await sleep(250);
  }

  const tookSeconds = (Date.parse(replay.endedAt) - Date.parse(replay.startedAt)) / 1000;
  const wantedSeconds = missed / rate;
  /** @type {string[]} */
  const wrong = [];
  let duplicates = 0;
  subscribers.forEach(({ missed: expected, got }, number) => {
    const arrived = /** @type {Map<string, number>} */ (receivers.arrivals[number]);
    const lost = [...expected].filter((id) => !arrived.has(id)).length;
    const again = [...arrived.keys()].filter((id) => got.has(id)).length;
    duplicates += [...arrived.values()].reduce((sum, times) => sum + times - 1, 0);
    log(`receiver ${number}: missed ${expected.size}, got ${arrived.size}, of these ${again} that it had`);
    if (lost > 0) wrong.push(`receiver ${number} did not get ${lost} that it had missed`);
    if (again > 0) wrong.push(`receiver ${number} got ${again} that it had`);
  });
  if (duplicates > inFlight) wrong.push(`${duplicates} came twice, and ${inFlight} were in flight at the kills`);
  if (replay.done !== missed || replay.found !== missed)
    wrong.push(`it found ${replay.found} and sent ${replay.done} of ${missed}`);
  const [shortest, longest] = [
    wantedSeconds * (1 - tolerance),
    wantedSeconds * (1 + tolerance) + killed * secondsPerKill,
  ];
  if (tookSeconds < shortest || tookSeconds > longest)
    wrong.push(`it took ${tookSeconds.toFixed(1)} s in place of ${wantedSeconds.toFixed(1)} s`);

  console.log(`\n${machine}, ${new Date().toISOString()}`);
  console.log(
    `${missed} dead letters of ${subscriptionCount} subscriptions, at ${rate} a second, dispatcher killed ${killed} times: ${tookSeconds.toFixed(1)} s (${wantedSeconds.toFixed(1)} s by the rate), ${duplicates} came twice (${inFlight} were in flight at the kills)`,
  );
  if (ledgerRows > 0) {
    const large = await countLarge();
    console.log(`dry run over ${large.count} deliveries: ${Math.round(large.ms)} ms, complete: ${large.isComplete}`);
    const { found, ms } = await countInGroups();
    console.log(
      `dead letters in groups: ${found.count} counted in ${found.groups.length} groups, complete: ${found.isComplete}; ${Math.round(ms)} ms`,
    );
  }
  for (const sentence of wrong) console.log(`FAILED: ${sentence}`);
  return wrong.length === 0;

  async function countLarge() {
    log(`filling the ledger with deliveries, up to ${ledgerRows} …`);
    const more = Math.max(1, Math.ceil((ledgerRows - notifications * subscriptionCount) / subscriptionCount));
    await ledger.query('TRUNCATE notification, delivery, attempt');
    await ledger.fill({ notifications: notifications + more, subscriptionIds, channel });
    const body = { selection: { all: true }, onlyMissed: false };
    const startedAt = performance.now();
    const answer = /** @type {{ count: number, isComplete: boolean }} */ (
      await cluster.call('POST', '/admin/v1/replays/dry-run', body)
    );
    const ms = performance.now() - startedAt;
    if (!answer.isComplete || ms > dryRunWithinMs) wrong.push(`the dry run took ${Math.round(ms)} ms`);
    const there = await ledger.count('TRUE');
    if (answer.count !== there) wrong.push(`the dry run counts ${answer.count} of ${there}`);
    return { ...answer, ms };
  }

  /** As the console shows them first; nobody has asked before. */
  async function countInGroups() {
    const startedAt = performance.now();
    const found = /** @type {{ count: number, groups: unknown[], isComplete: boolean }} */ (
      await cluster.call('GET', '/admin/v1/dead-letters')
    );
    const ms = performance.now() - startedAt;
    const dead = await ledger.count("state = 'failed'");
    const isRight = found.isComplete ? found.count === dead : found.count > 0 && found.count < dead;
    if (!isRight) wrong.push(`${found.count} dead letters are counted in groups, of ${dead}`);
    return { found, ms };
  }
});

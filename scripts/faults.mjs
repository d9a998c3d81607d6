// `npm run faults`: breaks everything Heraut depends on, one scenario after the other, and counts lost and doubled deliveries.
// docs/guarantees.md says what each scenario proves.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startChild } from './bench/child.mjs';
import { describeMachine } from './bench/report.mjs';
import { measureLimit } from './faults/calibration.mjs';
import { readOptions } from './faults/options.mjs';
import { toJson, toLines, toTable } from './faults/report.mjs';
import { FaultyServers } from './faults/servers.mjs';
import { playScenario } from './faults/play.mjs';
import { startGuardian } from './private-servers.mjs';
import { makeReady } from './ready-to-run.mjs';

const counts = { api: 2, worker: 2, dispatcher: 2 };

const startedAt = performance.now();
const log = (/** @type {string} */ line) => {
  console.error(`[${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s] ${line}`);
};

/** Ends each thing that was started, in the order of starting. @type {(() => Promise<void> | void)[]} */
const endings = [];
/** @type {Promise<void> | undefined} */
let ending;
const endAll = () => (ending ??= endInTurn());
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => {
    log('stopping …');
    void endAll().finally(() => process.exit(130));
  });
}

try {
  process.exitCode = (await run()) ? 0 : 1;
} catch (error) {
  // Work that a signal interrupts fails with some error; the reason is the signal.
  if (!ending) log(error instanceof Error ? (error.stack ?? error.message) : String(error));
  process.exitCode = 1;
} finally {
  await endAll();
}
// Without this, Node closes the handles it still has, and has been seen to wait for one of them for ever.
process.exit();

/** @returns {Promise<boolean>} whether everything was as promised */
async function run() {
  const options = readOptions();
  await makeReady(log);
  const { seed, pace } = options;
  log(`seed ${seed}, pace: ${pace}`);

  const directory = mkdtempSync(join(tmpdir(), 'heraut-faults-'));
  const { tell: tellGuardian } = startGuardian();
  tellGuardian(`d ${directory}`);
  endings.push(() => rmSync(directory, { recursive: true, force: true, maxRetries: 20 }));
  const machine = describeMachine(directory);
  log('starting private PostgreSQL, RabbitMQ and Redis …');
  const servers = await FaultyServers.start(log);
  endings.push(() => servers.stop());
  const receiver = await startChild('../faults/receiver.mjs');
  endings.push(receiver.stop);
  const publisher = await startChild('../faults/publisher.mjs');
  endings.push(publisher.stop);
  const receiverUrl = await receiver.call('listen', undefined);

  let lastRun = -1;
  const environmentOf = async (/** @type {string} */ name, /** @type {number} */ ratePerSecond) => {
    lastRun += 1;
    const logs = join(options.logs ? resolve(options.logs) : directory, name);
    // A log that a run before has left there would be read as if this one had written it.
    rmSync(logs, { recursive: true, force: true });
    mkdirSync(logs, { recursive: true });
    const settings = await servers.freshPlace();
    const parts = { settings, servers, receiver, receiverUrl, publisher, directory: logs, tellGuardian };
    return { ...parts, counts, run: lastRun, seed, ratePerSecond, pace, log };
  };
  const rate = options.rate ?? (await measureLimit(await environmentOf('limit', 0))) / 2;
  log(`${Math.round(rate)} notifications a second, each for two subscriptions`);

  /**
   * A scenario that cannot be played to its end has failed; the others are still played.
   * @param {import('./faults/stage.mjs').Scenario} scenario
   * @param {number} ratePerSecond
   * @returns {Promise<import('./faults/stage.mjs').Result>}
   */
  const play = async (scenario, ratePerSecond) => {
    const { name } = scenario;
    try {
      return await playScenario(scenario, await environmentOf(name, ratePerSecond));
    } catch (error) {
      if (ending) throw error;
      await servers.heal();
      const wrong = [`it broke off: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`];
      return { name, reckonings: [], deliveriesPerSecond: 0, wrong };
    }
  };

  /** @type {import('./faults/stage.mjs').Result[]} */
  const results = [];
  for (const scenario of options.scenarios) {
    log(`${scenario.name} …`);
    const result = await play(scenario, rate);
    results.push(result);
    for (const line of toLines(result)) log(line);
    for (const sentence of result.wrong) log(`${scenario.name}: WRONG: ${sentence}`);
  }

  console.log(
    `\n${machine}\n${new Date().toISOString()}, seed ${seed}, ${Math.round(rate)} notifications/s\n\n${toTable(results)}\n`,
  );
  const wrong = results.flatMap(({ name, wrong: sentences }) => sentences.map((sentence) => `${name}: ${sentence}`));
  for (const sentence of wrong) console.log(`FAILED: ${sentence}`);
  if (options.json) {
    const written = toJson({ machine, date: new Date().toISOString(), seed, results });
    writeFileSync(options.json, `${JSON.stringify(written, null, 2)}\n`);
  }
  return wrong.length === 0;
}

async function endInTurn() {
  for (const end of endings.toReversed()) {
    try {
      await end();
    } catch (error) {
      log(error instanceof Error ? error.message : String(error));
    }
  }
}

// `npm run faults`: breaks everything Heraut depends on, one scenario after the other, and counts lost and doubled
// deliveries. docs/guarantees.md says what each scenario proves.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { startChild } from './bench/child.mjs';
import { describeMachine } from './bench/report.mjs';
import { runCommand } from './command.mjs';
import { measureLimit } from './faults/calibration.mjs';
import { readOptions } from './faults/options.mjs';
import { toJson, toLines, toTable } from './faults/report.mjs';
import { FaultyServers } from './faults/servers.mjs';
import { playScenario } from './faults/play.mjs';
import { makeGuardedDirectory } from './private-servers.mjs';
import { makeReady } from './ready-to-run.mjs';

const counts = { api: 2, worker: 2, dispatcher: 2 };

await runCommand(async ({ log, onEnd }) => {
  const options = readOptions();
  await makeReady(log);
  const { seed, pace } = options;
  log(`seed ${seed}, pace: ${pace}`);

  const { directory, tellGuardian, remove } = makeGuardedDirectory('faults');
  onEnd(remove);
  const machine = describeMachine(directory);
  log('starting private PostgreSQL, RabbitMQ and Redis …');
  const servers = await FaultyServers.start(log);
  onEnd(() => servers.stop());
  const receiver = await startChild('../faults/receiver.mjs');
  onEnd(receiver.stop);
  const publisher = await startChild('../faults/publisher.mjs');
  onEnd(publisher.stop);
  let isStopping = false;
  onEnd(() => void (isStopping = true)); // the last one is called first
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
      if (isStopping) throw error;
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
});

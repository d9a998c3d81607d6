// `npm run bench`: measures how fast Heraut is on this machine, and the cost of a delivery. docs/performance.md says how.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startChild } from './bench/child.mjs';
import { startInstallation } from './bench/installation.mjs';
import { filters } from './bench/notification.mjs';
import { readOptions } from './bench/options.mjs';
import { requireProc } from './bench/processes.mjs';
import { reckon } from './bench/reckoning.mjs';
import { describeMachine, toJson, toTable } from './bench/report.mjs';
import { Measurements } from './bench/scenarios.mjs';
import { startGuardian } from './private-servers.mjs';
import { buildWhenNeeded, installWhenNeeded, requireNode } from './ready-to-run.mjs';

const warmUpSeconds = 10;
const rawSeconds = 3;
const openLoopRates = [200, 1000];
const fanOutNotifications = 500;
/** A delivery that comes twice may do so a little later. */
const latecomersMs = 2000;

const startedAt = performance.now();
const log = (/** @type {string} */ line) => {
  console.error(`[${((performance.now() - startedAt) / 1000).toFixed(1).padStart(5)} s] ${line}`);
};

/** Ends each thing that was started, in the order of starting. @type {(() => Promise<void> | void)[]} */
const endings = [];
/** @type {Promise<void> | undefined} */
let ending;
const endAll = () => (ending ??= endInTurn());
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
  process.on(signal, () => {
    log(`stopping (${signal}) …`);
    void endAll().finally(() => process.exit(130));
  });
}

try {
  process.exitCode = (await bench()) ? 0 : 1;
} catch (error) {
  // Work that a signal interrupts fails with some error; the reason is the signal.
  if (!ending) log(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
} finally {
  await endAll();
}
// As in faults.mjs: Node may wait for ever for a handle it closes.
process.exit();

/** @returns {Promise<boolean>} whether every delivery came, and came once */
async function bench() {
  const options = readOptions();
  requireNode();
  requireProc();
  installWhenNeeded(log);
  await buildWhenNeeded(log);

  const directory = mkdtempSync(join(tmpdir(), 'heraut-bench-'));
  const guardian = startGuardian();
  guardian.tell(`d ${directory}`);
  endings.push(() => rmSync(directory, { recursive: true, force: true, maxRetries: 20 }));
  const machine = describeMachine(directory);
  const installation = await startInstallation({
    ...options,
    directory,
    filters,
    onStarted: (stop) => endings.push(stop),
    tellGuardian: guardian.tell,
    log,
  });
  const receiver = await startChild('receiver.mjs');
  endings.push(receiver.stop);
  const load = await startChild('load.mjs');
  endings.push(load.stop);
  const receiverUrl = await receiver.call('listen', undefined);
  const measurements = new Measurements({ installation, receiver, load, receiverUrl, log });

  const figures = await measure(measurements, options);
  await sleep(latecomersMs);
  const wrong = await findWrong(measurements);
  await installation.stop(); // its logs are complete then
  for (const { level, event, times } of await installation.troubles()) log(`logged ${times} times: ${level} ${event}`);

  const results = {
    machine,
    date: new Date().toISOString(),
    embedded: options.embedded,
    processes: options.processes,
    ...figures,
  };
  console.log(`\n${toTable(results)}\n`);
  for (const sentence of wrong) console.log(`FAILED: ${sentence}`);
  if (wrong.length > 0) return false;
  if (options.json) writeFileSync(options.json, `${JSON.stringify(toJson(results), null, 2)}\n`);
  return true;
}

/**
 * @param {Measurements} measurements
 * @param {import('./bench/options.mjs').Options} options
 */
async function measure(measurements, { seconds, count, only }) {
  await measurements.subscribe();
  await measurements.warmUp(warmUpSeconds);
  const start = measurements.rss();
  // The limit is measured right before and after: the machine may have changed its pace meanwhile.
  const raw = [await measurements.raw(rawSeconds)];
  const closedLoop = only.includes('closed-loop') ? await measurements.closedLoop({ seconds, count }) : undefined;
  raw.push(await measurements.raw(rawSeconds));
  /** @type {import('./bench/report.mjs').OpenLoop[]} */
  const openLoop = [];
  if (only.includes('open-loop')) {
    for (const ratePerSecond of openLoopRates) openLoop.push(await measurements.openLoop({ ratePerSecond, seconds }));
  }
  const fanOut = only.includes('fan-out')
    ? await measurements.fanOut({ seconds, count: fanOutNotifications })
    : undefined;
  const end = measurements.rss();
  const rss = { apiStart: start.api, apiEnd: end.api, workerStart: start.worker, workerEnd: end.worker };
  return { raw, closedLoop, openLoop, fanOut, rss };
}

/**
 * @param {Measurements} measurements
 * @returns {Promise<string[]>} what is wrong, in sentences
 */
async function findWrong(measurements) {
  /** @type {string[]} */
  const wrong = [];
  for (const run of measurements.runs) wrong.push(...reckon(run, await measurements.arrivals(run.run)));
  const strange = await measurements.receiver.call('strange', undefined);
  if (strange > 0) wrong.push(`${strange} calls to the receiver fit no measurement`);
  return wrong;
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

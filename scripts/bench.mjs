// `npm run bench`: measures how fast Heraut is on this machine, and the cost of a delivery. docs/performance.md says
// how.
import { writeFileSync } from 'node:fs';
import { DiskWatch } from './bench/disk-watch.mjs';
import { isolationToJson, isolationToTable, missedIsolation } from './bench/isolation-report.mjs';
import { IsolationMeasurements } from './bench/isolation.mjs';
import { finishMeasuring, startMeasuringPlace, startOddReceivers } from './bench/measuring-place.mjs';
import { OddEndpoints } from './bench/odd-endpoints.mjs';
import { readOptions } from './bench/options.mjs';
import { toJson, toTable } from './bench/report.mjs';
import { toSoakJson, toSoakTable } from './bench/soak-report.mjs';
import { soak } from './bench/soak.mjs';
import { runCommand } from './command.mjs';

/** @typedef {import('./command.mjs').Run & { watchDisk: () => DiskWatch }} Command */

const warmUpSeconds = 10;
const rawSeconds = 3;
const openLoopRates = [200, 1000];
const fanOutNotifications = 500;
const shortClosedLoop = { seconds: 8, count: 160_000 };

await runCommand(async ({ log, onEnd }) => {
  const options = readOptions();
  const place = await startMeasuringPlace({ log, onEnd }, options);
  const { directory, machine, measurements } = place;
  const watchDisk = () => new DiskWatch(directory, onEnd);
  await measurements.subscribe();
  await measurements.warmUp(warmUpSeconds);
  const report = options.soak
    ? await reportSoak(measurements, { minutes: options.soak, disk: watchDisk(), log })
    : await reportFigures(measurements, options, { log, onEnd, watchDisk });
  const wrong = await finishMeasuring(place, log);

  const results = { machine, date: new Date().toISOString(), embedded: options.embedded, processes: options.processes };
  console.log(`\n${report.toTable(results)}\n`);
  for (const sentence of report.missedGoals) console.log(`goal missed: ${sentence}`);
  for (const sentence of wrong) console.log(`FAILED: ${sentence}`);
  if (wrong.length > 0) return false;
  if (options.json) writeFileSync(options.json, `${JSON.stringify(report.toJson(results), null, 2)}\n`);
  return true;
});

/**
 * @param {import('./bench/scenarios.mjs').Measurements} measurements
 * @param {{ minutes: number, disk: DiskWatch, log: (line: string) => void }} how
 * @returns {Promise<import('./bench/report.mjs').Report>}
 */
async function reportSoak(measurements, how) {
  const soaked = await soak(measurements, how);
  return {
    toTable: (results) => toSoakTable({ ...results, soaked }),
    toJson: (results) => toSoakJson({ ...results, soaked }),
    missedGoals: [],
  };
}

/**
 * @param {import('./bench/scenarios.mjs').Measurements} measurements
 * @param {import('./bench/options.mjs').Options} options
 * @param {Command} command
 * @returns {Promise<import('./bench/report.mjs').Report>}
 */
async function reportFigures(measurements, { seconds, count, only, beside, embedded }, command) {
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
  const isolation = only.includes('isolation')
    ? await measureIsolation(measurements, { seconds, kinds: beside, closedLoop }, command)
    : [];
  const figures = { raw, closedLoop, openLoop, fanOut, rss };
  return {
    toTable: (results) =>
      [
        toTable({ ...results, ...figures }),
        ...(isolation.length > 0 ? [isolationToTable(isolation, { embedded })] : []),
      ].join('\n\n'),
    toJson: (results) => ({ ...toJson({ ...results, ...figures }), isolation: isolationToJson(isolation) }),
    missedGoals: missedIsolation(isolation, { embedded }),
  };
}

/**
 * @param {import('./bench/scenarios.mjs').Measurements} measurements
 * @param {object} how
 * @param {number} how.seconds
 * @param {readonly import('./bench/odd-endpoints.mjs').Kind[]} how.kinds
 * @param {import('./bench/report.mjs').ClosedLoop | undefined} how.closedLoop undefined: a short one is measured first
 * @param {Command} command
 */
async function measureIsolation(measurements, { seconds, kinds, closedLoop }, { log, onEnd, watchDisk }) {
  const { installation } = measurements;
  const odd = new OddEndpoints(await startOddReceivers({ log, onEnd }), installation);
  const freezable = new OddEndpoints(await startOddReceivers({ log, onEnd }), installation, 1);
  const { deliveriesPerSecond } = closedLoop ?? (await measurements.closedLoop(shortClosedLoop));
  const isolation = new IsolationMeasurements({ measurements, odd, freezable, disk: watchDisk(), log });
  return await isolation.measure({ seconds, kinds, closedLoopPerSecond: deliveriesPerSecond });
}

// `npm run bench`: measures how fast Heraut is on this machine, and the cost of a delivery. docs/performance.md says how.
import { writeFileSync } from 'node:fs';
import { finishMeasuring, startMeasuringPlace } from './bench/measuring-place.mjs';
import { readOptions } from './bench/options.mjs';
import { toJson, toTable } from './bench/report.mjs';
import { toSoakJson, toSoakTable } from './bench/soak-report.mjs';
import { soak } from './bench/soak.mjs';
import { runCommand } from './command.mjs';

const warmUpSeconds = 10;
const rawSeconds = 3;
const openLoopRates = [200, 1000];
const fanOutNotifications = 500;

await runCommand(async ({ log, onEnd }) => {
  const options = readOptions();
  const place = await startMeasuringPlace({ log, onEnd }, options);
  const { machine, measurements } = place;
  await measurements.subscribe();
  await measurements.warmUp(warmUpSeconds);
  const report = options.soak
    ? await reportSoak(measurements, { minutes: options.soak, log })
    : await reportFigures(measurements, options);
  const wrong = await finishMeasuring(place, log);

  const results = { machine, date: new Date().toISOString(), embedded: options.embedded, processes: options.processes };
  console.log(`\n${report.toTable(results)}\n`);
  for (const sentence of wrong) console.log(`FAILED: ${sentence}`);
  if (wrong.length > 0) return false;
  if (options.json) writeFileSync(options.json, `${JSON.stringify(report.toJson(results), null, 2)}\n`);
  return true;
});

/**
 * @param {import('./bench/scenarios.mjs').Measurements} measurements
 * @param {{ minutes: number, log: (line: string) => void }} how
 * @returns {Promise<import('./bench/report.mjs').Report>}
 */
async function reportSoak(measurements, { minutes, log }) {
  const soaked = await soak(measurements, { minutes, log });
  return {
    toTable: (results) => toSoakTable({ ...results, soaked }),
    toJson: (results) => toSoakJson({ ...results, soaked }),
  };
}

/**
 * @param {import('./bench/scenarios.mjs').Measurements} measurements
 * @param {import('./bench/options.mjs').Options} options
 * @returns {Promise<import('./bench/report.mjs').Report>}
 */
async function reportFigures(measurements, { seconds, count, only }) {
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
  const figures = { raw, closedLoop, openLoop, fanOut, rss };
  return {
    toTable: (results) => toTable({ ...results, ...figures }),
    toJson: (results) => toJson({ ...results, ...figures }),
  };
}

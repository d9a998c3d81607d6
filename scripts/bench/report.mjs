import { fdatasyncSync, openSync, closeSync, writeSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';

/** @typedef {import('./scenarios.mjs').Measurements} Measurements */
/** @typedef {import('./percentiles.mjs').Percentiles} Percentiles */
/** @typedef {Awaited<ReturnType<Measurements['closedLoop']>>} ClosedLoop */
/** @typedef {Awaited<ReturnType<Measurements['openLoop']>>} OpenLoop */
/** @typedef {Awaited<ReturnType<Measurements['fanOut']>>} FanOut */
/** @typedef {{ apiStart: number, apiEnd: number, workerStart: number, workerEnd: number }} Rss */

/**
 * @typedef {object} Setting
 * @property {string} machine
 * @property {string} date
 * @property {boolean} embedded
 * @property {string | undefined} processes
 */

/**
 * @typedef {object} Report
 * @property {(setting: Setting) => string} toTable
 * @property {(setting: Setting) => unknown} toJson
 * @property {string[]} missedGoals in sentences
 */

/**
 * @typedef {object} Figures
 * @property {number[]} raw per second
 * @property {ClosedLoop | undefined} closedLoop
 * @property {OpenLoop[]} openLoop
 * @property {FanOut | undefined} fanOut
 * @property {Rss} rss
 */

/** @typedef {Setting & Figures} Results */

const ourParts = /** @type {const} */ (['api', 'worker', 'postgres', 'rabbitmq', 'redis']);

/** @param {string} directory where Postgres writes */
export function describeMachine(directory) {
  const processors = cpus();
  const memory = `${(totalmem() / 2 ** 30).toFixed(0)} GiB`;
  const sync = `fdatasync ${fdatasyncMicros(directory).toFixed(0)} µs`;
  const kernel = release().split('.').slice(0, 2).join('.');
  return `${processors.length} × ${processors[0]?.model.trim()}, ${memory}, Linux ${kernel}, Node ${process.versions.node}, ${sync}`;
}

/**
 * The shortest time of a commit: of all properties of the disk, the ledger's speed depends most on this one.
 * @param {string} directory
 */
function fdatasyncMicros(directory) {
  const file = openSync(join(directory, 'fdatasync'), 'w');
  const page = Buffer.alloc(8192, 1);
  const times = 200;
  const startedAt = performance.now();
  for (let time = 0; time < times; time++) {
    writeSync(file, page, 0, page.length, 0);
    fdatasyncSync(file);
  }
  closeSync(file);
  return ((performance.now() - startedAt) * 1000) / times;
}

/**
 * The figures as `--json` writes them.
 * @param {Results} results
 */
export function toJson({ machine, date, raw, closedLoop, openLoop, fanOut, rss }) {
  const cpu = closedLoop?.cpuMicrosPerDelivery ?? {};
  return {
    machine,
    date,
    raw: { perSecond: Math.round(mean(raw)) },
    closedLoop: closedLoop && {
      deliveriesPerSecond: Math.round(closedLoop.deliveriesPerSecond),
      cpuMicrosPerDelivery: {
        ...Object.fromEntries(ourParts.map((part) => [part, rounded(cpu[part] ?? 0)])),
        total: rounded(totalCpu(closedLoop)),
      },
    },
    openLoop: openLoop.map(({ ratePerSecond, publishToReceiveMs, acceptedMs }) => ({
      ratePerSecond,
      publishToReceiveMs: roundedPercentiles(publishToReceiveMs),
      acceptedMs: roundedPercentiles(acceptedMs),
    })),
    fanOut: fanOut && {
      subscriptions: fanOut.subscriptions,
      deliveriesPerSecond: Math.round(fanOut.deliveriesPerSecond),
    },
    rssMegabytes: {
      apiStart: rounded(rss.apiStart),
      apiEnd: rounded(rss.apiEnd),
      workerStart: rounded(rss.workerStart),
      workerEnd: rounded(rss.workerEnd),
    },
  };
}

/**
 * @param {Results} results
 * @returns {string}
 */
export function toTable({ machine, date, embedded, processes, raw, closedLoop, openLoop, fanOut, rss }) {
  const isSplit = !embedded && !processes;
  /** @type {[string, string][]} */
  const rows = [
    ...settingRows({ machine, date, embedded, processes }),
    ['raw limit', `${whole(mean(raw))}/s (${raw.map(whole).join(', ')})`],
  ];
  if (closedLoop) rows.push(...closedLoopRows(closedLoop, mean(raw), { isSplit, hasGoals: processes === 'auto' }));
  for (const { ratePerSecond, publishToReceiveMs, acceptedMs } of openLoop) {
    rows.push([`open loop ${ratePerSecond}/s`, `publish → receive ${milliseconds(publishToReceiveMs)}`]);
    rows.push(['', `201 ${milliseconds(acceptedMs)}`]);
  }
  if (fanOut) rows.push([`fan-out 1 → ${fanOut.subscriptions}`, `${whole(fanOut.deliveriesPerSecond)} deliveries/s`]);
  rows.push(['memory (RSS)', `${isSplit ? 'api' : 'Heraut'} ${whole(rss.apiStart)} → ${whole(rss.apiEnd)} MB`]);
  if (isSplit) rows.push(['', `worker ${whole(rss.workerStart)} → ${whole(rss.workerEnd)} MB`]);
  return inColumns(rows);
}

/**
 * @param {Setting} setting
 * @returns {[string, string][]}
 */
export function settingRows({ machine, date, embedded, processes }) {
  const servers = `PostgreSQL, RabbitMQ, Redis${processes ? `; every role, PROCESSES=${processes}` : ''}`;
  const stack = embedded ? 'embedded: one process with PGlite and an in-process queue' : servers;
  return [
    ['machine', machine],
    ['date', date],
    ['stack', stack],
  ];
}

/**
 * Each column but the last is as wide as its widest cell.
 * @param {string[][]} rows
 * @returns {string}
 */
export function inColumns(rows) {
  const widthOf = (/** @type {number} */ column) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  return rows
    .map((row) =>
      row.map((cell, column) => (column < row.length - 1 ? cell.padEnd(widthOf(column)) : cell)).join('   '),
    )
    .join('\n');
}

/**
 * @param {ClosedLoop} closedLoop
 * @param {number} rawPerSecond
 * @param {{ isSplit: boolean, hasGoals: boolean }} how `isSplit`: into a process for the API and one for the rest
 * @returns {[string, string][]}
 */
function closedLoopRows(closedLoop, rawPerSecond, { isSplit, hasGoals }) {
  const { deliveries, deliveriesPerSecond, cpuMicrosPerDelivery, elsewhere, acceptedMs, bodyBytes } = closedLoop;
  const parts = ourParts.flatMap((part) => {
    const micros = cpuMicrosPerDelivery[part];
    return micros === undefined ? [] : [`${part === 'api' && !isSplit ? 'Heraut' : part} ${whole(micros)}`];
  });
  const { load = 0, receiver = 0 } = cpuMicrosPerDelivery;
  const goal = (/** @type {string} */ text) => (hasGoals ? ` (goal: ${text})` : '');
  return [
    ['closed loop', `${whole(deliveriesPerSecond)} deliveries/s of ${bodyBytes} bytes (${deliveries} in all)`],
    ['', `${(deliveriesPerSecond / rawPerSecond).toFixed(3)} of the raw limit${goal('at least 0.16')}`],
    ['', `201 ${milliseconds(acceptedMs)}`],
    ['CPU per delivery', `${parts.join(' + ')} = ${whole(totalCpu(closedLoop))} µs${goal('at most 300')}`],
    ['', `besides: load generator ${whole(load)}, receiver ${whole(receiver)} µs`],
    ['noise', `others kept ${elsewhere.toFixed(2)} processors busy during the closed loop`],
  ];
}

/**
 * CPU microseconds of a delivery in all parts of the installation.
 * @param {Pick<ClosedLoop, 'cpuMicrosPerDelivery'>} closedLoop
 */
export function totalCpu({ cpuMicrosPerDelivery }) {
  return ourParts.reduce((sum, part) => sum + (cpuMicrosPerDelivery[part] ?? 0), 0);
}

/** @param {number[]} values */
export const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** @param {number} value */
export const whole = (value) => value.toFixed(0);

/** @param {number} value */
export const rounded = (value) => Math.round(value * 10) / 10;

/** @param {Percentiles} percentiles */
export const roundedPercentiles = ({ p50, p95, p99 }) => ({ p50: rounded(p50), p95: rounded(p95), p99: rounded(p99) });

/** @param {Percentiles} percentiles */
const milliseconds = ({ p50, p95, p99 }) => `p50 ${p50.toFixed(1)}  p95 ${p95.toFixed(1)}  p99 ${p99.toFixed(1)} ms`;

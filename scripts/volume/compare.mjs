import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { totalCpu } from '../bench/report.mjs';
import { channels, filters } from '../bench/notification.mjs';
import { emptyLedger, FilledDays } from './filled-days.mjs';
import { addDeleted, setThere } from './idle-subscriptions.mjs';

/** @typedef {import('./cases.mjs').VolumeCase} VolumeCase */
/** @typedef {import('./statement-log.mjs').Statements} Statements */

/**
 * One closed loop.
 * @typedef {object} Loop
 * @property {number} deliveriesPerSecond
 * @property {number} cpuMicrosPerDelivery of the whole installation
 * @property {Statements} statements
 */

/** @typedef {{ name: string, what: string, rows: number, empty: Loop[], full: Loop[] }} Comparison */

/**
 * What is there or not there in a moment.
 * @typedef {object} Volume
 * @property {() => Promise<void>} enter
 * @property {() => Promise<void>} leave
 * @property {() => Promise<void>} remove
 */

/** After a change of the tables each statement is planned anew, and memory is cold. */
const settlingSeconds = 2;
const mostPerSecond = 20_000;
/** Its tables with their indexes, and the server's log of changes. */
const bytesPerRow = 650;
const bytesBesides = 2e9;

/**
 * Measures on the empty ledger, then beside the volume, and so on.
 * @param {VolumeCase} volumeCase
 * @param {{ rows: number, pairs: number, seconds: number }} how
 * @param {object} place
 * @param {import('./database.mjs').Database} place.database
 * @param {import('./statement-log.mjs').StatementLog} place.statementLog
 * @param {import('../bench/scenarios.mjs').Measurements} place.measurements
 * @param {(line: string) => void} place.log
 * @returns {Promise<Comparison>}
 */
export async function compare({ name, what, deliveries }, { rows, pairs, seconds }, place) {
  const { database, log } = place;
  requireDisk(rows);
  log(`${name}: ${rows.toLocaleString('en')} ${what} …`);
  const volume = deliveries ? await fillDays(rows, deliveries, place) : await addSubscriptions(name, rows, database);
  /** @type {Comparison} */
  const comparison = { name, what, rows, empty: [], full: [] };
  for (let pair = 1; pair <= pairs; pair++) {
    log(`${name}: ${pair} of ${pairs}, empty`);
    await emptyLedger(database);
    comparison.empty.push(await measure(seconds, place));
    log(`${name}: ${pair} of ${pairs}, beside them`);
    await volume.enter();
    comparison.full.push(await measure(seconds, place));
    await volume.leave();
  }
  await volume.remove();
  return comparison;
}

/**
 * @param {number} seconds
 * @param {Parameters<typeof compare>[2]} place
 * @returns {Promise<Loop>}
 */
async function measure(seconds, { database, statementLog, measurements }) {
  // Each begins with the same work ahead of the server.
  await database.query('CHECKPOINT');
  await measurements.closedLoop({ seconds: settlingSeconds, count: settlingSeconds * mostPerSecond });
  const from = await statementLog.end();
  const figures = await measurements.closedLoop({ seconds, count: seconds * mostPerSecond });
  const statements = await statementLog.since(from);
  await measurements.reckon({ except: 1 });
  return { deliveriesPerSecond: figures.deliveriesPerSecond, cpuMicrosPerDelivery: totalCpu(figures), statements };
}

/**
 * @param {number} rows
 * @param {import('./cases.mjs').Deliveries} deliveries
 * @param {Parameters<typeof compare>[2]} place
 * @returns {Promise<Volume>}
 */
async function fillDays(rows, deliveries, { database, log }) {
  const days = new FilledDays(database, log);
  await days.fill(rows, deliveries);
  return { enter: () => days.exchange(), leave: () => days.exchange(), remove: () => days.drop() };
}

/**
 * @param {string} owner
 * @param {number} rows
 * @param {import('./database.mjs').Database} database
 * @returns {Promise<Volume>}
 */
async function addSubscriptions(owner, rows, database) {
  await addDeleted(database, { owner, rows, channel: channels.single, filter: filters[0] ?? '' });
  return {
    enter: () => setThere(database, { owner, areThere: true }),
    leave: () => setThere(database, { owner, areThere: false }),
    remove: async () => {}, // the catalogue keeps what was deleted
  };
}

/**
 * @param {number} rows
 * @throws {Error} when the disk would be full before the end
 */
function requireDisk(rows) {
  const { bavail, bsize } = statfsSync(tmpdir());
  const [needed, free] = [rows * bytesPerRow + bytesBesides, bavail * bsize];
  const gigabytes = (/** @type {number} */ bytes) => `${(bytes / 1e9).toFixed(1)} GB`;
  if (free < needed) {
    throw new Error(`${gigabytes(needed)} of disk are needed under ${tmpdir()}; ${gigabytes(free)} are free.`);
  }
}

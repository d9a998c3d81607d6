import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { totalCpu } from '../bench/report.mjs';
import { channels, filters } from '../bench/notification.mjs';
import { DeadEndpoint } from './dead-endpoint.mjs';
import { emptyLedger, FilledDays, idleSubscriptions } from './filled-days.mjs';
import { addDeleted, setThere } from './idle-subscriptions.mjs';
import { WellEndpoint } from './well-endpoint.mjs';

/** @typedef {import('./cases.mjs').VolumeCase} VolumeCase */
/** @typedef {import('./statement-log.mjs').Statements} Statements */

/**
 * One closed loop.
 * @typedef {object} Loop
 * @property {number} deliveriesPerSecond
 * @property {number} cpuMicrosPerDelivery of the whole installation
 * @property {Statements} statements
 */

/**
 * @typedef {object} Comparison
 * @property {string} name
 * @property {string} what
 * @property {number} rows
 * @property {Loop[]} empty
 * @property {Loop[]} full
 * @property {Once} [once] undefined: none was made
 * @property {number[]} [releasedPerSecond] beside each full loop, which shares the machine with them: its rate is no goal
 */

/** One round of the dispatcher. @typedef {Statements & { failure: string }} Once `failure`: what it wrote if it failed */

/**
 * Rows that are there or not there in a moment.
 * @typedef {object} Volume
 * @property {() => Promise<void>} enter
 * @property {() => Promise<void>} leave
 * @property {() => Promise<void>} remove
 */

/** After a change of the tables each statement is planned anew, and memory is cold. */
const settlingSeconds = 2;
/** Of a measurement, beside the two loops. */
const furtherSeconds = 3;
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
 * @param {() => Promise<import('../bench/odd-endpoints.mjs').OddReceivers>} place.startOddReceivers
 * @param {(line: string) => void} place.log
 * @returns {Promise<Comparison>}
 */
export async function compare(volumeCase, { rows, pairs, seconds }, place) {
  const { name, what, deliveries, arrivingPerSecond, isReleased = false } = volumeCase;
  const { database, measurements, log } = place;
  log(`${name}: ${rows.toLocaleString('en')} ${what} …`);
  const dead = arrivingPerSecond
    ? await DeadEndpoint.create(database, measurements, await place.startOddReceivers())
    : undefined;
  const well = isReleased
    ? await WellEndpoint.create(database, measurements, await place.startOddReceivers())
    : undefined;
  const own = dead ?? well;
  const ids = own ? [own.subscriptionId] : await idleSubscriptions(database);
  const volume = deliveries
    ? await fillDays(rows, { deliveries, ids }, place)
    : await addSubscriptions(name, rows, database);
  /** @type {Comparison} */
  const comparison = { name, what, rows, empty: [], full: [] };
  const releasedPerSecond = [];
  for (let pair = 1; pair <= pairs; pair++) {
    log(`${name}: ${pair} of ${pairs}, empty`);
    await emptyLedger(database);
    comparison.empty.push(await measure(seconds, place));
    log(`${name}: ${pair} of ${pairs}, beside them`);
    await volume.enter();
    const [before, sinceMs] = [(await well?.delivered()) ?? 0, performance.now()];
    const arriving = dead?.publish({
      ratePerSecond: arrivingPerSecond ?? 0,
      seconds: settlingSeconds + seconds + furtherSeconds,
    });
    const [loop, arrived] = await Promise.all([measure(seconds, place), arriving]);
    comparison.full.push(loop);
    if (dead) log(`${name}: ${arrived} more were published for it; ${await dead.held()} are held`);
    if (well) {
      const [taken, passedMs] = [(await well.delivered()) - before, performance.now() - sinceMs];
      releasedPerSecond.push(Math.round((taken / passedMs) * 1000));
      log(`${name}: ${taken} of them were delivered, ${releasedPerSecond.at(-1)} a second`);
    }
    // It goes on until nothing is held any more.
    if (pair === pairs && !well) comparison.once = await dispatchOnce(place);
    await volume.leave();
  }
  if (well) comparison.releasedPerSecond = releasedPerSecond;
  await own?.remove();
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
  // Before its rows go: a lease that ends after that finds nothing to repeat.
  await measurements.runs.untilSettled(database);
  await measurements.runs.reckon({ except: 1 });
  return { deliveriesPerSecond: figures.deliveriesPerSecond, cpuMicrosPerDelivery: totalCpu(figures), statements };
}

/**
 * A process that has just started looks at everything, and does what others do each minute, hour or day: a loop of
 * seconds sees little of that.
 * @param {Parameters<typeof compare>[2]} place
 * @returns {Promise<Once>}
 */
async function dispatchOnce({ statementLog, measurements, log }) {
  log('one round of the dispatcher …');
  const from = await statementLog.end();
  const failure = await measurements.installation.dispatchOnce();
  return { ...(await statementLog.since(from)), failure };
}

/**
 * @param {number} rows
 * @param {{ deliveries: import('./cases.mjs').Deliveries, ids: string[] }} what `ids`: of the subscriptions
 * @param {Parameters<typeof compare>[2]} place
 * @returns {Promise<Volume>}
 */
async function fillDays(rows, { deliveries, ids }, { database, log }) {
  const { nextLook } = deliveries;
  const days = new FilledDays(database, log);
  await days.fill(rows, deliveries, ids);
  return {
    enter: async () => {
      await days.exchange();
      await days.digest();
      if (nextLook) {
        const row = `INSERT INTO held_subscription (subscription_id, look_at) VALUES ($1, ${nextLook})`;
        await database.query(row, ids.slice(0, 1));
      }
    },
    leave: async () => {
      await days.exchange();
      await database.query('DELETE FROM held_subscription');
    },
    remove: () => days.drop(),
  };
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
export function requireDisk(rows) {
  const { bavail, bsize } = statfsSync(tmpdir());
  const [needed, free] = [rows * bytesPerRow + bytesBesides, bavail * bsize];
  const gigabytes = (/** @type {number} */ bytes) => `${(bytes / 1e9).toFixed(1)} GB`;
  if (free < needed) {
    throw new Error(`${gigabytes(needed)} of disk are needed under ${tmpdir()}; ${gigabytes(free)} are free.`);
  }
}

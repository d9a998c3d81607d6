// A steady load for as long as one likes: what grows with time shows here.
import { sharedNowMs } from './clock.mjs';
import { median } from './percentiles.mjs';

/** @typedef {import('./percentiles.mjs').Percentiles} Percentiles */

/**
 * @typedef {object} Minute
 * @property {number} minute counts from 1
 * @property {Percentiles} publishToReceiveMs
 * @property {Percentiles} acceptedMs
 * @property {number} slowestDiskMs the longest small write of the minute
 * @property {{ api: number, worker: number }} rss resident megabytes, the median of the minute
 */

/** @typedef {{ ratePerSecond: number, minutes: Minute[] }} Soaked */

/**
 * A line through the memory of the minutes that count.
 * @typedef {object} Growth
 * @property {number} from megabytes at its start
 * @property {number} to megabytes at its end
 * @property {number} perHour megabytes
 * @property {boolean} isFlat
 */

/** An eighth of what two slow cores carry: what is measured is time, not load. */
const ratePerSecond = 500;
const sampleMs = 2000;
/** Until then the working set still grows: code is compiled, connections and heaps reach their sizes. */
export const settlingMinutes = 5;
/** With fewer, the line says more about the last garbage collection than about growth. */
export const fewestMinutes = 5;
/** The share by which garbage collection alone moves the line in half an hour. */
const flatShare = 0.05;

/**
 * @param {import('./scenarios.mjs').Measurements} measurements
 * @param {{ minutes: number, disk: import('./disk-watch.mjs').DiskWatch, log: (line: string) => void }} how
 * @returns {Promise<Soaked>}
 */
export async function soak(measurements, { minutes, disk, log }) {
  /** @type {Minute[]} */
  const all = [];
  for (let minute = 1; minute <= minutes; minute++) {
    const startedMs = sharedNowMs();
    const samples = [measurements.rss()];
    const sampling = setInterval(() => samples.push(measurements.rss()), sampleMs);
    const figures = await measurements.openLoop({ ratePerSecond, seconds: 60 }).finally(() => clearInterval(sampling));
    const [slowestDiskMs = 0] = disk.slowestMs(startedMs, sharedNowMs(), 1);
    await measurements.runs.reckon({ except: 1 });
    const rss = {
      api: median(samples.map(({ api }) => api)),
      worker: median(samples.map(({ worker }) => worker)),
    };
    log(`minute ${minute} of ${minutes}: api ${rss.api.toFixed(0)} MB, worker ${rss.worker.toFixed(0)} MB`);
    const { publishToReceiveMs, acceptedMs } = figures;
    all.push({ minute, publishToReceiveMs, acceptedMs, slowestDiskMs, rss });
  }
  return { ratePerSecond, minutes: all };
}

/**
 * Whether memory stayed the same after it had settled.
 * @param {number[]} megabytes of each minute, from the first
 * @returns {Growth | undefined} undefined when there are too few minutes to tell
 */
export function growthOf(megabytes) {
  const counted = megabytes.slice(settlingMinutes);
  if (counted.length < fewestMinutes) return undefined;
  const middle = (counted.length - 1) / 2;
  const mean = counted.reduce((sum, value) => sum + value, 0) / counted.length;
  // Least squares, the minutes counted from the middle one.
  let products = 0;
  let squares = 0;
  for (const [index, value] of counted.entries()) {
    products += (index - middle) * (value - mean);
    squares += (index - middle) ** 2;
  }
  const perMinute = products / squares;
  const from = mean - perMinute * middle;
  const to = mean + perMinute * middle;
  return { from, to, perHour: perMinute * 60, isFlat: to - from <= flatShare * from };
}

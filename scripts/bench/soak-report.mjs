import { inColumns, rounded, roundedPercentiles, settingRows, whole } from './report.mjs';
import { fewestMinutes, growthOf, settlingMinutes } from './soak.mjs';

/** @typedef {import('./report.mjs').Setting} Setting */
/** @typedef {import('./soak.mjs').Soaked} Soaked */
/** @typedef {keyof import('./soak.mjs').Minute['rss']} Process */

/**
 * @param {Setting & { soaked: Soaked }} results
 * @returns {string}
 */
export function toSoakTable({ soaked, ...setting }) {
  const { ratePerSecond, minutes } = soaked;
  const processes = processesOf(setting);
  const ms = (/** @type {import('./percentiles.mjs').Percentiles} */ { p50, p95, p99 }) =>
    [p50, p95, p99].map((value) => value.toFixed(1).padStart(7)).join('');
  const lines = minutes.map(({ minute, publishToReceiveMs, acceptedMs, slowestDiskMs, rss }) => [
    String(minute).padStart(6),
    ms(publishToReceiveMs),
    ms(acceptedMs),
    slowestDiskMs.toFixed(1).padStart(8),
    ...processes.map(([process]) => `${whole(rss[process])} MB`),
  ]);
  const percentiles = ['p50', 'p95', 'p99'].map((name) => name.padStart(7)).join('');
  const head = [
    ['', 'publish → receive, ms', '201, ms', 'disk, ms', ...processes.map(([, name]) => name)],
    ['minute', percentiles, percentiles, 'longest'],
  ];
  const verdicts = processes.map(([process, name]) => [name, verdictOf(minutes.map(({ rss }) => rss[process]))]);
  return [
    inColumns([...settingRows(setting), ['open loop', `${ratePerSecond}/s for ${minutes.length} minutes`]]),
    inColumns([...head, ...lines]),
    inColumns(verdicts),
  ].join('\n\n');
}

/**
 * The figures as `--json` writes them.
 * @param {Setting & { soaked: Soaked }} results
 */
export function toSoakJson({ soaked: { ratePerSecond, minutes }, ...setting }) {
  const memory = processesOf(setting).map(([process]) => {
    const growth = growthOf(minutes.map(({ rss }) => rss[process]));
    const figures = growth && {
      fromMegabytes: rounded(growth.from),
      toMegabytes: rounded(growth.to),
      megabytesPerHour: rounded(growth.perHour),
      isFlat: growth.isFlat,
    };
    return [process, figures ?? null];
  });
  return {
    machine: setting.machine,
    date: setting.date,
    soak: {
      ratePerSecond,
      minutes: minutes.map(({ minute, publishToReceiveMs, acceptedMs, slowestDiskMs, rss }) => ({
        minute,
        publishToReceiveMs: roundedPercentiles(publishToReceiveMs),
        acceptedMs: roundedPercentiles(acceptedMs),
        slowestDiskMs: rounded(slowestDiskMs),
        rssMegabytes: Object.fromEntries(processesOf(setting).map(([process]) => [process, rounded(rss[process])])),
      })),
      memory: Object.fromEntries(memory),
    },
  };
}

/**
 * Embedded, the api process is all of Heraut.
 * @param {Setting} setting
 * @returns {(readonly [Process, string])[]}
 */
function processesOf({ embedded, processes }) {
  return embedded || processes
    ? [['api', 'Heraut']]
    : ['api', 'worker'].map((name) => [/** @type {Process} */ (name), name]);
}

/** @param {number[]} megabytes */
function verdictOf(megabytes) {
  const growth = growthOf(megabytes);
  if (!growth) return `memory: too short to tell; that takes ${settlingMinutes + fewestMinutes} minutes`;
  const { from, to, perHour, isFlat } = growth;
  const change = `${whole(from)} → ${whole(to)} MB, ${perHour < 0 ? '' : '+'}${whole(perHour)} MB an hour`;
  return `memory after minute ${settlingMinutes}: ${change}: ${isFlat ? 'flat' : 'GOAL MISSED: not flat'}`;
}

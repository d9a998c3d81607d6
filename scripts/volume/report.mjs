import { inColumns, mean, rounded, whole } from '../bench/report.mjs';
import { shortestLoggedMs } from './statement-log.mjs';

/** @typedef {import('./compare.mjs').Comparison} Comparison */
/** @typedef {import('./compare.mjs').Loop} Loop */
/** @typedef {import('./statement-log.mjs').Call} Call */
/** @typedef {import('./statement-log.mjs').Statements} Statements */
/** @typedef {import('./searches.mjs').Searched} Searched */
/** @typedef {{ machine: string, date: string, processes: string, comparisons: Comparison[], searched?: Searched }} Results */

const leastRatio = 0.9;
const longestMs = 100;
const longestSearchMs = 200;

/**
 * The figures as `--json` writes them.
 * @param {Results} results
 */
export function toJson({ machine, date, processes, comparisons, searched }) {
  const figures = (/** @type {Loop[]} */ loops) => ({
    deliveriesPerSecond: Math.round(rateOf(loops)),
    cpuMicrosPerDelivery: rounded(cpuOf(loops)),
  });
  const figure = (/** @type {Call} */ { name, ms }) => ({ name, ms: rounded(ms) });
  const caseOf = (/** @type {Comparison} */ comparison) => ({
    name: comparison.name,
    ...figures(comparison.full),
    ratio: Math.round(ratioOf(comparison) * 1000) / 1000,
    slowestStatement: figure(slowestOfLoops(comparison.full)),
    slowestOfOneRound: comparison.once && figure(slowestOf([comparison.once])),
  });
  const released = comparisons.find(({ releasedPerSecond }) => releasedPerSecond);
  return {
    machine,
    date,
    processes,
    empty: figures(comparisons.flatMap(({ empty }) => empty)),
    cases: comparisons.filter(({ releasedPerSecond }) => !releasedPerSecond).map(caseOf),
    released: released && { ...caseOf(released), releasedPerSecond: released.releasedPerSecond },
    searched,
  };
}

/**
 * @param {Results} results
 * @returns {string}
 */
export function toTable({ machine, date, processes, comparisons, searched }) {
  const rows = comparisons.map((comparison) => {
    const { what, rows: count, empty, full, once } = comparison;
    const [before, beside] = [slowestOfLoops(empty), slowestOfLoops(full)];
    return [
      `${count.toLocaleString('en')} ${what}`,
      `${whole(rateOf(empty))} → ${whole(rateOf(full))}/s`,
      ratioOf(comparison).toFixed(2),
      `${whole(cpuOf(empty))} → ${whole(cpuOf(full))} µs`,
      `${inWords(beside)} (empty: ${inWords(before)})`,
      once ? inWords(slowestOf([once])) : 'none was made',
    ];
  });
  const head = [
    'beside',
    'deliveries',
    'ratio',
    'CPU per delivery',
    'slowest statement',
    'of one round of the dispatcher',
  ];
  return [
    machine,
    `${date}, PROCESSES=${processes}`,
    ...(comparisons.length > 0 ? ['', inColumns([head, ...rows])] : []),
    ...(searched ? ['', searchTable(searched)] : []),
  ].join('\n');
}

/** @param {Searched} searched */
function searchTable({ rows, digestSeconds, searches }) {
  const lines = searches.map(({ query, ms, medianMs, found, isBounded }) => [
    query,
    `${whole(medianMs)} ms`,
    `${whole(ms)} ms`,
    `${found}${isBounded ? ', and searched on from there' : ''}`,
  ]);
  const title = `${rows.toLocaleString('en')} notifications; their digests were written in ${whole(digestSeconds)} s`;
  return [title, inColumns([['search', 'median', 'slowest', 'found'], ...lines])].join('\n');
}

/**
 * @param {Results} results
 * @returns {string[]} in sentences
 */
export function missedGoals({ comparisons, searched }) {
  const slowSearches = (searched?.searches ?? []).filter(({ ms }) => ms > longestSearchMs);
  const ofSearches = slowSearches.map(
    ({ query, ms }) => `search: ${query} took up to ${whole(ms)} ms (goal: at most ${longestSearchMs})`,
  );
  const ofLoops = comparisons.flatMap((comparison) => {
    const { name, releasedPerSecond, full, once } = comparison;
    const ratio = ratioOf(comparison);
    return [
      ...(ratio < leastRatio && !releasedPerSecond
        ? [`${name}: ${ratio.toFixed(2)} of the empty ledger (goal: at least ${leastRatio})`]
        : []),
      ...slowOrCancelled(
        name,
        full.map(({ statements }) => statements),
      ),
      ...slowOrCancelled(`${name}, one round of the dispatcher`, once ? [once] : []),
    ];
  });
  return [...ofLoops, ...ofSearches];
}

/**
 * @param {string} where
 * @param {Statements[]} statements
 */
function slowOrCancelled(where, statements) {
  const slow = byName(statements.flatMap(({ calls }) => calls.filter(({ ms }) => ms > longestMs)));
  const cancelled = byName(statements.flatMap((each) => each.cancelled.map((name) => ({ name, ms: 0 }))));
  return [
    ...slow.map(
      (each) =>
        `${where}: ${each.name} took up to ${whole(each.ms)} ms, ${each.times} calls more than ${longestMs} ms (goal: none)`,
    ),
    ...cancelled.map(
      (each) => `${where}: ${each.name} was cancelled ${each.times} times by its time limit (goal: never)`,
    ),
  ];
}

/** @param {Comparison} comparison */
function ratioOf({ empty, full }) {
  return rateOf(full) / rateOf(empty);
}

/** @param {Loop[]} loops */
function rateOf(loops) {
  return mean(loops.map(({ deliveriesPerSecond }) => deliveriesPerSecond));
}

/** @param {Loop[]} loops */
function cpuOf(loops) {
  return mean(loops.map(({ cpuMicrosPerDelivery }) => cpuMicrosPerDelivery));
}

/**
 * @param {Statements[]} statements
 * @returns {Call} when nothing took long enough to be logged, the name says so
 */
function slowestOf(statements) {
  const calls = statements.flatMap((each) => each.calls);
  const none = { name: 'each at most', ms: shortestLoggedMs };
  return calls.reduce((slowest, call) => (call.ms > slowest.ms ? call : slowest), none);
}

/** @param {Loop[]} loops */
function slowestOfLoops(loops) {
  return slowestOf(loops.map(({ statements }) => statements));
}

/** @param {Call} slowest */
function inWords({ name, ms }) {
  return `${name} ${whole(ms)} ms`;
}

/**
 * @param {Call[]} calls
 * @returns {(Call & { times: number })[]} the longest call of each statement, the slowest statement first
 */
function byName(calls) {
  /** @type {Map<string, Call & { times: number }>} */
  const found = new Map();
  for (const { name, ms } of calls) {
    const known = found.get(name) ?? { name, ms: 0, times: 0 };
    found.set(name, { name, ms: Math.max(known.ms, ms), times: known.times + 1 });
  }
  return [...found.values()].toSorted((a, b) => b.ms - a.ms);
}

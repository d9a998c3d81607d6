/**
 * @typedef {import('./stage.mjs').Result} Result
 * @typedef {Result['reckonings'][number]} Reckoning
 */

const columns = [
  'scenario',
  'strategy',
  'accepted',
  'delivered',
  'lost',
  'duplicates',
  'unknown',
  'failed',
  'longest recovery',
];

/**
 * @param {Result[]} results
 * @returns {string}
 */
export function toTable(results) {
  const rows = results.flatMap(({ name, reckonings }) =>
    reckonings.map((reckoning) => [
      name,
      reckoning.strategy,
      String(reckoning.accepted),
      String(reckoning.delivered),
      String(reckoning.lost),
      duplicatesOf(reckoning),
      `${reckoning.unknown}${reckoning.unknownArrived > 0 ? ` (${reckoning.unknownArrived} came)` : ''}`,
      String(reckoning.failed),
      recoveryOf(reckoning),
    ]),
  );
  const widths = columns.map((column, index) => Math.max(column.length, ...rows.map((row) => row[index]?.length ?? 0)));
  const line = (/** @type {string[]} */ cells) =>
    `| ${cells.map((cell, index) => (index < 2 ? cell.padEnd(widths[index] ?? 0) : cell.padStart(widths[index] ?? 0))).join(' | ')} |`;
  const rule = `| ${widths.map((width, index) => (index < 2 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [line(columns), rule, ...rows.map(line)].join('\n');
}

/**
 * The results so far of a run that is stopped before its table: one line for each strategy.
 * @param {Result} result
 * @returns {string[]}
 */
export function toLines({ name, reckonings }) {
  return reckonings.map(
    (reckoning) =>
      `${name}, ${reckoning.strategy}: delivered ${reckoning.delivered} of ${reckoning.accepted}, lost ${reckoning.lost}, ` +
      `duplicates ${duplicatesOf(reckoning)}, longest recovery ${recoveryOf(reckoning)}`,
  );
}

/**
 * The figures as `--json` writes them.
 * @param {{ machine: string, date: string, seed: number, results: Result[] }} run
 */
export function toJson({ machine, date, seed, results }) {
  return {
    machine,
    date,
    seed,
    scenarios: results.flatMap(({ name, reckonings }) =>
      reckonings.map(({ strategy, accepted, delivered, lost, duplicates, unknown, failed, longestRecoveryMs }) => ({
        name,
        strategy,
        accepted,
        delivered,
        lost,
        duplicates,
        unknown,
        failed,
        longestRecoveryMs: Math.round(longestRecoveryMs),
      })),
    ),
    /** Of those that were played, also of one that broke off. */
    wrong: results.flatMap(({ name, wrong }) => wrong.map((sentence) => `${name}: ${sentence}`)),
  };
}

/** @param {Reckoning} reckoning */
function duplicatesOf({ duplicates, allowedDuplicates }) {
  return `${duplicates} (of ${allowedDuplicates})`;
}

/** @param {Reckoning} reckoning */
function recoveryOf({ longestRecoveryMs }) {
  return `${(longestRecoveryMs / 1000).toFixed(1)} s`;
}

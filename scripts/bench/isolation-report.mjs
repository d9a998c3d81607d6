import { inColumns, rounded, whole } from './report.mjs';

/** @typedef {import('./isolation.mjs').Isolation} Isolation */

/** On the embedded default Heraut shares one thread with its database. */
const mostRatio = { servers: 1.5, embedded: 2 };
/** The time for held deliveries when hanging endpoints are well again, or for a burst, against the closed loop. */
const mostTimes = 2;
/** @type {readonly Isolation['kind'][]} */
const drained = ['hanging', 'hanging-later', 'answering-late', 'burst'];

/** @param {Isolation} row */
const worstThirdOf = ({ thirdsP95Ms }) => Math.max(...thirdsP95Ms);

/** @param {Isolation} row */
const ratioOf = (row) => worstThirdOf(row) / row.undisturbedP95Ms;

/** @param {Isolation[]} rows */
export function isolationToJson(rows) {
  return rows.map((row) => ({
    kind: row.kind,
    endpoints: row.endpoints,
    undisturbedP95Ms: rounded(row.undisturbedP95Ms),
    besideP95Ms: rounded(row.besideP95Ms),
    worstThirdP95Ms: rounded(worstThirdOf(row)),
    ratio: Math.round(ratioOf(row) * 100) / 100,
    lost: row.lost,
    secondsUntilAllDelivered: rounded(row.secondsUntilAllDelivered),
    undisturbedThirdsP95Ms: row.undisturbedThirdsP95Ms.map(rounded),
    thirdsP95Ms: row.thirdsP95Ms.map(rounded),
    undisturbedThirdsDiskMs: row.undisturbedThirdsDiskMs.map(rounded),
    thirdsDiskMs: row.thirdsDiskMs.map(rounded),
    held: row.held,
    machineSeconds: rounded(row.machineSeconds),
    calls: row.calls,
    repeated: row.repeated,
  }));
}

/**
 * @param {Isolation[]} rows
 * @param {{ embedded: boolean }} setting
 * @returns {string}
 */
export function isolationToTable(rows, { embedded }) {
  const head = [
    'p95 of a healthy endpoint beside',
    'undisturbed',
    'by thirds',
    'disk',
    'beside',
    'by thirds',
    'disk',
    `ratio (goal: ${goalOf(embedded)})`,
    'lost',
    'held',
    'delivered after',
    'machine needs',
    'calls',
    'repeated',
  ];
  const lines = rows.map((row) => [
    `${row.endpoints} ${row.kind}`,
    `${rounded(row.undisturbedP95Ms)} ms`,
    row.undisturbedThirdsP95Ms.map(rounded).join(', '),
    row.undisturbedThirdsDiskMs.map(whole).join(', '),
    `${rounded(row.besideP95Ms)} ms`,
    row.thirdsP95Ms.map(rounded).join(', '),
    row.thirdsDiskMs.map(whole).join(', '),
    ratioOf(row).toFixed(2),
    whole(row.lost),
    whole(row.held),
    `${rounded(row.secondsUntilAllDelivered)} s`,
    `${rounded(row.machineSeconds)} s`,
    whole(row.calls),
    whole(row.repeated),
  ]);
  return inColumns([head, ...lines]);
}

/**
 * @param {Isolation[]} rows
 * @param {{ embedded: boolean }} setting
 * @returns {string[]} in sentences
 */
export function missedIsolation(rows, { embedded }) {
  return rows.flatMap((row) => {
    const name = `${row.endpoints} ${row.kind}`;
    const { secondsUntilAllDelivered, machineSeconds } = row;
    const isLate = drained.includes(row.kind) && secondsUntilAllDelivered > mostTimes * machineSeconds;
    // Not a number where nothing arrived: that misses the goal as well.
    const isFelt = !(ratioOf(row) <= goalOf(embedded));
    return [
      ...(isFelt ? [`${name}: the worst third is ${ratioOf(row).toFixed(2)} (goal: at most ${goalOf(embedded)})`] : []),
      ...(isLate
        ? [
            `${name}: ${row.held} deliveries took ${rounded(secondsUntilAllDelivered)} s (goal: at most ${rounded(mostTimes * machineSeconds)} s)`,
          ]
        : []),
    ];
  });
}

/** @param {boolean} embedded */
function goalOf(embedded) {
  return embedded ? mostRatio.embedded : mostRatio.servers;
}

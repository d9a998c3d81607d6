// The times of searches of the admin API on a full ledger: every parameter by itself, and combinations that no index
// serves.
import { setTimeout as pause } from 'node:timers/promises';
import { emptyLedger, FilledDays, idleSubscriptions } from './filled-days.mjs';

/** @typedef {import('./cases.mjs').VolumeCase} VolumeCase */

/**
 * @typedef {object} Search
 * @property {string} query of `list`, from its path on
 * @property {number} ms the slowest of the calls
 * @property {number} medianMs
 * @property {number} found on the page
 * @property {boolean} isBounded the page is not full, although the list goes on
 */

/** @typedef {{ rows: number, digestSeconds: number, searches: Search[] }} Searched */

const times = 5;
/** A task writes digests every ten seconds. */
const quietMs = 15_000;
const day = 86_400_000;

/**
 * @param {VolumeCase} volumeCase
 * @param {number} rows
 * @param {Parameters<typeof import('./compare.mjs').compare>[2]} place
 * @returns {Promise<Searched>}
 */
export async function measureSearches({ deliveries }, rows, { database, measurements, log }) {
  if (!deliveries) throw new Error('There is nothing to search.');
  const ids = await idleSubscriptions(database);
  const days = new FilledDays(database, log);
  await days.fill(rows, deliveries, ids);
  await emptyLedger(database);
  await days.exchange();
  const digestSeconds = await untilDigested(database);
  log(`searches: digests were written in ${digestSeconds.toFixed(0)} s`);
  const { url, token } = measurements.installation;
  /** @type {Search[]} */
  const searches = [];
  for (const query of queriesFor(rows, deliveries.days, ids)) {
    /** @type {number[]} */
    const ms = [];
    /** @type {{ deliveries?: unknown[], notifications?: unknown[], searchedTo: string | null }} */
    let answer = { searchedTo: null };
    for (let call = 1; call <= times; call++) {
      const from = performance.now();
      const response = await fetch(`${url}/admin/v1/${query}`, { headers: { authorization: `Bearer ${token}` } });
      answer = /** @type {typeof answer} */ (await response.json());
      ms.push(performance.now() - from);
      if (!response.ok) throw new Error(`${query}: ${response.status} ${JSON.stringify(answer)}`);
    }
    const found = (answer.deliveries ?? answer.notifications ?? []).length;
    const inOrder = ms.toSorted((one, other) => one - other);
    const [medianMs, slowest] = [inOrder[Math.floor(times / 2)] ?? 0, inOrder.at(-1) ?? 0];
    searches.push({ query, ms: slowest, medianMs, found, isBounded: answer.searchedTo !== null });
    log(`${query}: ${slowest.toFixed(0)} ms, ${found} found${answer.searchedTo ? `, to ${answer.searchedTo}` : ''}`);
  }
  await days.exchange();
  await emptyLedger(database);
  await days.drop();
  return { rows, digestSeconds, searches };
}

/**
 * @param {import('./database.mjs').Database} database
 * @returns {Promise<number>} seconds that it took, from the first digest to the last
 */
async function untilDigested(database) {
  let [known, beganAt, endedAt] = [0, 0, performance.now()];
  for (;;) {
    const [{ count }] = await database.query('SELECT count(*)::int AS count FROM digest');
    if (count > known) {
      endedAt = performance.now();
      beganAt ||= endedAt;
      known = count;
    } else if (known > 0 && performance.now() - endedAt > quietMs) return (endedAt - beganAt) / 1000;
    await pause(200);
  }
}

/**
 * The searches look for what `cases.mjs` makes.
 * @param {number} rows
 * @param {number} days
 * @param {string[]} ids of the subscriptions
 * @returns {string[]}
 */
function queriesFor(rows, days, ids) {
  const ofDay = Math.ceil(rows / days);
  const rare = Math.ceil(ofDay / 2);
  const object = (/** @type {number} */ n) => `https://zaken.example.com/zaken/api/v1/zaken/${n}`;
  const hours = (/** @type {number} */ ago) => new Date(Date.now() - ago * day).toISOString();
  const aDay = { acceptedFrom: hours(days / 2), acceptedTo: hours(days / 2 - 1) };
  /** @type {Record<string, string>[]} */
  const both = [
    {},
    { channel: 'bench-fan-out' },
    { channel: 'nothing' },
    { publisher: 'usual' },
    { publisher: 'rare' },
    { subscription: ids[0] ?? '' },
    { subscription: '00000000-0000-4000-8000-000000000000' },
    { owner: 'bench' },
    { owner: 'nobody' },
    ...['delivered', 'failed', 'waiting', 'held', 'queued', 'unknown'].map((state) => ({ state })),
    aDay,
    { minAttempts: '2' },
    { minAttempts: '100' },
    { lastStatus: '204' },
    { lastStatus: '418' },
    { errorClass: 'timeout' },
    { errorClass: 'tls' },
    { mainObject: object(rare) },
    { mainObject: object(-1) },
    { resourceUrl: `https://zaken.example.com/zaken/api/v1/statussen/${rare}` },
    { action: 'create' },
    { action: 'seldom' },
    { characteristic: 'zaaktype:7' },
    { characteristic: `bronorganisatie:${rare % 10_000}` },
    { key: `key-${rare - (rare % 10)}` },
    { action: 'seldom', characteristic: 'zaaktype:7' },
    { action: 'create', characteristic: `bronorganisatie:${rare % 10_000}`, ...aDay },
    { mainObject: object(rare), action: 'create', state: 'delivered' },
    { state: 'failed', errorClass: 'timeout' },
    { state: 'failed', errorClass: 'tls' },
    { state: 'failed', channel: 'bench-fan-out', action: 'seldom' },
    { state: 'failed', subscription: ids[0] ?? '', lastStatus: '418' },
    { state: 'failed', owner: 'bench', ...aDay },
    { state: 'delivered', subscription: ids[0] ?? '', lastStatus: '418' },
    { lastStatus: '503', publisher: 'usual', minAttempts: '3' },
  ];
  const queries = both.flatMap((query) =>
    ['notifications', 'deliveries'].map((list) => `${list}?${new URLSearchParams(query).toString()}`),
  );
  return [...queries, 'notifications?unmatched=true', 'notifications?unmatched=true&channel=bench-fan-out'];
}

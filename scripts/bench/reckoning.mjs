/** @typedef {Pick<import('./runs.mjs').Run, 'name' | 'published' | 'mayRepeat'>} Run */
/** @typedef {import('./arrivals.mjs').Arrivals} Arrivals */

const shown = 5;

/**
 * Compares the deliveries that arrived with the notifications accepted: each once (or more often, if it may be
 * repeated), under the id the publisher was told.
 * @param {Run} run
 * @param {Arrivals} arrivals
 * @returns {string[]} faults, in sentences
 */
export function reckon({ name, published, mayRepeat = false }, { subscriptions, times, ids }) {
  /** @type {string[]} */
  const missing = [];
  /** @type {string[]} */
  const doubled = [];
  /** @type {string[]} */
  const renamed = [];
  /** @type {string[]} */
  const unasked = [];
  for (let index = 0; index < times.length; index++) {
    const number = Math.floor(index / subscriptions);
    const accepted = published.ids[number] ?? '';
    const count = times[index] ?? 0;
    const who = `${accepted || `number ${number}`} for subscription ${index % subscriptions}`;
    if (accepted !== '' && count === 0) missing.push(who);
    if (accepted === '' && count > 0) unasked.push(who);
    if (count > 1 && !mayRepeat) doubled.push(`${who} (${count} times)`);
    if (accepted !== '' && count > 0 && ids[index] !== accepted) renamed.push(`${who} as ${ids[index]}`);
  }
  const refused = published.ids.filter((id) => id === '').length;
  return [
    ...(refused > 0 ? [`${name}: ${refused} publications were not accepted: ${published.troubles.join('; ')}`] : []),
    ...sentence(name, 'deliveries are missing', missing),
    ...sentence(name, 'deliveries came more than once', doubled),
    ...sentence(name, 'deliveries came under another webhook-id', renamed),
    ...sentence(name, 'deliveries came of what was not accepted', unasked),
  ];
}

/**
 * @param {string} name
 * @param {string} what
 * @param {string[]} which
 */
function sentence(name, what, which) {
  if (which.length === 0) return [];
  const more = which.length > shown ? ', …' : '';
  return [`${name}: ${which.length} ${what}: ${which.slice(0, shown).join(', ')}${more}`];
}

/**
 * @param {import('./load.mjs').Published} published
 * @param {Arrivals} arrivals
 * @returns {number} accepted deliveries that did not arrive
 */
export function countLost({ ids }, { subscriptions, times }) {
  return times.filter((count, index) => count === 0 && (ids[Math.floor(index / subscriptions)] ?? '') !== '').length;
}

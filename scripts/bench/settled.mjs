import { setTimeout as sleep } from 'node:timers/promises';

/** The database of the ledger. @typedef {{ query: (text: string, values?: unknown[]) => Promise<any[]> }} Ledger */

/**
 * An outcome is written within moments of its call. Less than a lease (15 s): one that ends would have the delivery
 * called once more, and so hide that its first outcome was never written.
 */
const settledWithinMs = 10_000;

/**
 * By the two ends of the run, which Postgres finds in the index; all of its ids are hashed.
 */
const statesOf = `
  SELECT state::text AS state, count(*)::int AS count FROM delivery
  WHERE notification_id BETWEEN $1 AND $2 AND notification_id = ANY ($3::uuid[]) GROUP BY 1 ORDER BY 1`;

/**
 * Waits until the ledger says of each delivery of a run that has arrived that it is delivered, or gives up.
 * @param {Ledger} ledger
 * @param {Pick<import('./runs.mjs').Run, 'name' | 'published'>} run
 * @param {number} subscriptions that each notification is for
 * @returns {Promise<string[]>} faults, in sentences
 */
export async function findUnsettled(ledger, { name, published }, subscriptions, patienceMs = settledWithinMs) {
  const ids = published.ids.filter((id) => id !== '').toSorted();
  if (ids.length === 0) return [];
  const giveUpMs = performance.now() + patienceMs;
  for (;;) {
    /** @type {{ state: string, count: number }[]} */
    const states = await ledger.query(statesOf, [ids[0], ids.at(-1), ids]);
    const delivered = states.find(({ state }) => state === 'delivered')?.count ?? 0;
    const others = states.filter(({ state }) => state !== 'delivered');
    const expected = ids.length * subscriptions;
    if (delivered === expected && others.length === 0) return [];
    if (performance.now() > giveUpMs) {
      const found = states.map(({ state, count }) => `${count} ${state}`).join(', ') || 'none';
      return [`${name}: the ledger does not say of ${expected} deliveries that they are delivered: ${found}`];
    }
    await sleep(100);
  }
}

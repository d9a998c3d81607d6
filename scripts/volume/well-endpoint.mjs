// A receiver of its own that takes whatever is sent to it, and none of whose deliveries counts for the closed loop.
import { OddEndpoints } from '../bench/odd-endpoints.mjs';

/** @typedef {import('./database.mjs').Database} Database */

export class WellEndpoint {
  /**
   * @param {Database} database
   * @param {OddEndpoints} endpoints
   * @param {string} subscriptionId
   */
  constructor(database, endpoints, subscriptionId) {
    this.database = database;
    this.endpoints = endpoints;
    this.subscriptionId = subscriptionId;
  }

  /**
   * @param {Database} database
   * @param {import('../bench/scenarios.mjs').Measurements} measurements
   * @param {import('../bench/odd-endpoints.mjs').OddReceivers} receivers
   */
  static async create(database, { installation }, receivers) {
    const endpoints = new OddEndpoints(receivers, installation);
    const [made] = await endpoints.subscribe({ endpoints: 1, origins: 1 });
    if (!made) throw new Error('It has no subscription.');
    const { subscription } = made;
    return new WellEndpoint(database, endpoints, subscription.slice(subscription.lastIndexOf('/') + 1));
  }

  /** How many deliveries it was given. @returns {Promise<number>} */
  async delivered() {
    const [{ count }] = await this.database.query(
      "SELECT count(*)::int AS count FROM delivery WHERE subscription_id = $1 AND state = 'delivered'",
      [this.subscriptionId],
    );
    return count;
  }

  async remove() {
    await this.endpoints.unsubscribe();
  }
}

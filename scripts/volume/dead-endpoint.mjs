// A receiver that is gone, whose endpoint is known to be in trouble, and for which notifications keep coming.
import { channels } from '../bench/notification.mjs';
import { OddEndpoints } from '../bench/odd-endpoints.mjs';
import { apiAsTarget } from '../bench/scenarios.mjs';

/** @typedef {import('./database.mjs').Database} Database */
/** @typedef {import('../bench/scenarios.mjs').Measurements} Measurements */

/** As after some minutes: the probes are a minute apart, and the next one comes while it is measured. */
const longOpen = `
  INSERT INTO endpoint (address, reason, failures, probes, opened_at, next_probe_at)
  VALUES ($1, 'refused', 10, 8, now() - interval '5 min', now() + interval '10 s')`;

export class DeadEndpoint {
  /**
   * @param {Database} database
   * @param {Measurements} measurements
   * @param {OddEndpoints} endpoints
   * @param {{ subscriptionId: string, origin: string }} known
   */
  constructor(database, measurements, endpoints, { subscriptionId, origin }) {
    this.database = database;
    this.measurements = measurements;
    this.endpoints = endpoints;
    this.subscriptionId = subscriptionId;
    this.origin = origin;
  }

  /**
   * @param {Database} database
   * @param {Measurements} measurements
   * @param {import('../bench/odd-endpoints.mjs').OddReceivers} receivers
   */
  static async create(database, measurements, receivers) {
    const { installation } = measurements;
    const endpoints = new OddEndpoints(receivers, installation);
    const [made] = await endpoints.subscribe({ endpoints: 1, origins: 1 });
    if (!made) throw new Error('It has no subscription.');
    await endpoints.beginTrouble('refusing');
    const { subscription, callbackUrl } = made;
    const subscriptionId = subscription.slice(subscription.lastIndexOf('/') + 1);
    const { origin } = new URL(callbackUrl);
    await database.query(longOpen, [origin]);
    return new DeadEndpoint(database, measurements, endpoints, { subscriptionId, origin });
  }

  /**
   * Publishes for it.
   * @param {{ ratePerSecond: number, seconds: number }} how
   * @returns {Promise<number>} how many, all of them accepted
   */
  async publish({ ratePerSecond, seconds }) {
    const { runs, load, installation } = this.measurements;
    const notifications = ratePerSecond * seconds;
    // Not kept: none is to arrive.
    const run = await runs.begin(this.endpoints.receivers, { notifications, subscriptions: 1, turns: 1 });
    const target = apiAsTarget(installation, { run, channel: channels.others });
    const { ids, troubles } = await load.call('openLoop', { target, ratePerSecond, seconds });
    if (ids.includes('')) throw new Error(`Not all of ${notifications} were accepted: ${troubles.join('; ')}`);
    return notifications;
  }

  /** How many deliveries are held for it. @returns {Promise<number>} */
  async held() {
    const [{ count }] = await this.database.query(
      "SELECT count(*)::int AS count FROM delivery WHERE subscription_id = $1 AND state = 'held'",
      [this.subscriptionId],
    );
    return count;
  }

  async remove() {
    await this.endpoints.unsubscribe();
    await this.database.query('DELETE FROM endpoint WHERE address = $1', [this.origin]);
  }
}

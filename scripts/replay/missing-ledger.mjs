import pg from 'pg';

/** @typedef {{ id: string, missed: Set<string>, got: Set<string> }} Subscriber by notification */

/** A ledger in which each subscription has got half of the notifications, and the other half are its dead letters. */
export class MissingLedger {
  /** @param {string} url */
  constructor(url) {
    this.url = url;
  }

  /**
   * @param {object} what
   * @param {number} what.notifications spread over the last hour
   * @param {string[]} what.subscriptionIds
   * @param {string} what.channel
   * @returns {Promise<Subscriber[]>}
   */
  async fill({ notifications, subscriptionIds, channel }) {
    const body = JSON.stringify({
      kanaal: channel,
      hoofdObject: 'https://cases.example.org/cases/1',
      resource: 'case',
      resourceUrl: 'https://cases.example.org/cases/1',
      actie: 'create',
      aanmaakdatum: '2026-01-01T12:00:00Z',
      kenmerken: {},
    });
    // UUIDs of version 7 in the order of their numbers.
    await this.query(
      `INSERT INTO notification (id, channel, publisher, body)
       SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000 - 3600000 + n * 3600000.0 / $1)::bigint), 12, '0') || '7000'
         || '8' || lpad(to_hex(n), 15, '0'))::uuid, $2, 'replay', $3
       FROM generate_series(1, $1::int) AS n`,
      [notifications, channel, body],
    );
    await this.query(
      `INSERT INTO delivery (notification_id, subscription_id, state, attempts, failures, last_status, last_error, ended_at)
       SELECT id, s, CASE WHEN is_dead THEN 'failed' ELSE 'delivered' END::delivery_state, 1, is_dead::int,
         CASE WHEN is_dead THEN 500 ELSE 204 END, CASE WHEN is_dead THEN 'HTTP 500' END, now()
       FROM notification CROSS JOIN unnest($1::uuid[]) AS s
         CROSS JOIN LATERAL (SELECT hashtext(id::text || s::text) % 2 = 0 AS is_dead) AS drawn
       ORDER BY id`,
      [subscriptionIds],
    );
    await this.query('VACUUM (ANALYZE) notification, delivery'); // as autovacuum would have by then
    return Promise.all(
      subscriptionIds.map(async (id) => ({
        id,
        missed: await this.#of(id, 'failed'),
        got: await this.#of(id, 'delivered'),
      })),
    );
  }

  /** Deliveries on their way: so many may arrive twice when something is killed. @returns {Promise<number>} */
  inFlight() {
    return this.count("state = 'queued'");
  }

  unfinished() {
    return this.count("state IN ('queued', 'waiting', 'held', 'sending')");
  }

  /**
   * @param {string} condition of deliveries
   * @returns {Promise<number>}
   */
  async count(condition) {
    const [row] = await this.query(`SELECT count(*)::int AS count FROM delivery WHERE ${condition}`);
    return row.count;
  }

  /**
   * @param {string} subscriptionId
   * @param {string} state
   */
  async #of(subscriptionId, state) {
    const rows = await this.query(
      'SELECT notification_id AS id FROM delivery WHERE subscription_id = $1 AND state = $2::delivery_state',
      [subscriptionId, state],
    );
    return new Set(rows.map(({ id }) => /** @type {string} */ (id)));
  }

  /**
   * @param {string} text
   * @param {unknown[]} [values]
   * @returns {Promise<any[]>}
   */
  async query(text, values = []) {
    const client = new pg.Client({ connectionString: this.url });
    await client.connect();
    try {
      return (await client.query(text, values)).rows;
    } finally {
      await client.end();
    }
  }
}

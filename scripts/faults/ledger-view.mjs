import pg from 'pg';

/** @typedef {{ state: string, generation: number }} LedgerEntry */

/** Reads the ledger directly: the processes under test may be down. */
export class LedgerView {
  /** @param {string} databaseUrl */
  constructor(databaseUrl) {
    this.databaseUrl = databaseUrl;
  }

  /** How many deliveries are not over, by state. @returns {Promise<Map<string, number>>} */
  async unfinished() {
    const rows = await this.#query(
      `SELECT state::text, count(*)::int AS count FROM delivery
       WHERE state IN ('queued', 'waiting', 'held', 'sending') GROUP BY state`,
    );
    return new Map(rows.map(({ state, count }) => [state, count]));
  }

  /** @param {string} subscriptionId @returns {Promise<Map<string, LedgerEntry>>} by notification */
  async deliveriesOf(subscriptionId) {
    const rows = await this.#query(
      'SELECT notification_id, state::text, generation FROM delivery WHERE subscription_id = $1',
      [subscriptionId],
    );
    return new Map(rows.map(({ notification_id, state, generation }) => [notification_id, { state, generation }]));
  }

  /**
   * How many of a subscription have arrived, as far as the ledger knows. @param {string} subscriptionId @returns
   * {Promise<number>}
   */
  async delivered(subscriptionId) {
    const [row] = await this.#query(
      "SELECT count(*)::int AS count FROM delivery WHERE subscription_id = $1 AND state = 'delivered'",
      [subscriptionId],
    );
    return row.count;
  }

  /** The endpoints whose circuit breaker is open. @returns {Promise<string[]>} */
  async openEndpoints() {
    const rows = await this.#query('SELECT address FROM endpoint ORDER BY address');
    return rows.map(({ address }) => address);
  }

  /** Calls that were made, as far as the ledger knows. @returns {Promise<number>} */
  async attempts() {
    const [row] = await this.#query('SELECT count(*)::int AS count FROM attempt');
    return row.count;
  }

  /** Where deliveries are locked, or are about to be. @returns {Promise<'redis' | 'postgres'>} */
  async locksAreIn() {
    const outages = await this.#query('SELECT FROM redis_outage WHERE ends_at > now()');
    return outages.length > 0 ? 'postgres' : 'redis';
  }

  /** Locks and seals that have been written to Postgres because Redis could not be used. */
  async lockedAndSealed() {
    const [row] = await this.#query(
      `SELECT count(*) FILTER (WHERE token IS NOT NULL)::int AS locked, count(*) FILTER (WHERE token IS NULL)::int AS sealed
       FROM idempotency_key WHERE expires_at > now()`,
    );
    return /** @type {{ locked: number, sealed: number }} */ (row);
  }

  /**
   * By the name of its machine, which is its pid: see host-of-its-own.mjs.
   * @param {number[]} pids
   * @returns {Promise<string[]>} of all of them that have had a heartbeat
   */
  async processIds(pids) {
    const rows = await this.#query('SELECT id FROM process WHERE host = ANY ($1)', [pids.map((pid) => `pid-${pid}`)]);
    return rows.map(({ id }) => id);
  }

  /**
   * The deliveries that one of these processes has locked in Postgres.
   * @param {string[]} processIds
   * @returns {Promise<string[]>} their keys
   */
  async lockedBy(processIds) {
    const rows = await this.#query(
      "SELECT key FROM idempotency_key WHERE split_part(token, '/', 1) = ANY ($1) AND expires_at > now()",
      [processIds],
    );
    return rows.map(({ key }) => key);
  }

  /**
   * @param {string} subscriptionId
   * @param {string[]} processIds
   * @returns {Promise<string[]>} the notifications of which one of these processes has the delivery in hand
   */
  async inHandOf(subscriptionId, processIds) {
    const rows = await this.#query(
      `SELECT notification_id FROM delivery
       WHERE process = ANY ($2) AND subscription_id = $1 AND state IN ('queued', 'sending')`,
      [subscriptionId, processIds],
    );
    return rows.map(({ notification_id }) => notification_id);
  }

  /** From now on, deliveries that are handed out again are counted by the state they were in. */
  async watchHandOuts() {
    await this.#query(`
      CREATE TABLE handed_out (state delivery_state NOT NULL);
      CREATE FUNCTION note_handed_out() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO handed_out VALUES (OLD.state); RETURN NULL; END $$;
      CREATE TRIGGER handed_out AFTER UPDATE ON delivery FOR EACH ROW
        WHEN (NEW.state = 'queued' AND NEW.generation > OLD.generation) EXECUTE FUNCTION note_handed_out()`);
  }

  /**
   * @returns {Promise<Map<string, number>>} by former state: waiting, which the queue had lost, or held, for which no
   *   endpoint had room
   */
  async handOuts() {
    const rows = await this.#query('SELECT state::text, count(*)::int AS count FROM handed_out GROUP BY state');
    return new Map(rows.map(({ state, count }) => [state, count]));
  }

  /**
   * A connection of its own each time: any of them may be the one that a scenario kills.
   * @param {string} text
   * @param {unknown[]} [values]
   * @returns {Promise<any[]>}
   */
  async #query(text, values = []) {
    const client = new pg.Client({ connectionString: this.databaseUrl });
    client.on('error', () => {}); // the query fails as well
    await client.connect();
    try {
      return (await client.query(text, values)).rows;
    } finally {
      await client.end();
    }
  }
}

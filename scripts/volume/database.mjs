import pg from 'pg';

/** By this name the statements of the benchmark itself are told from Heraut's. */
export const applicationName = 'volume';

const deadlock = '40P01';
const maxTries = 5;

/** The ledger's database, for what no API offers. */
export class Database {
  /** @param {string} url */
  constructor(url) {
    this.pool = new pg.Pool({
      connectionString: url,
      application_name: applicationName,
      max: 2,
      // Rows that are lost when the server crashes now are not missed.
      options: '-c synchronous_commit=off',
    });
    // A connection that the server ends fails its query, if it has one; without listeners this process would end as
    // well.
    this.pool.on('error', () => {});
    this.pool.on('connect', (client) => client.on('error', () => {}));
  }

  /**
   * @param {string} text
   * @param {unknown[]} [values]
   * @returns {Promise<any[]>} rows
   */
  async query(text, values) {
    return (await this.pool.query(text, values)).rows;
  }

  /**
   * All or nothing, and once more when it runs into a deadlock with a statement of Heraut.
   * @param {string[]} statements
   */
  async change(statements) {
    const text = ['BEGIN', ...statements, 'COMMIT'].join(';\n');
    for (let tries = 1; ; tries++) {
      const client = await this.pool.connect();
      try {
        await client.query(text);
        return;
      } catch (error) {
        await client.query('ROLLBACK');
        if (/** @type {pg.DatabaseError} */ (error).code !== deadlock || tries === maxTries) throw error;
      } finally {
        client.release();
      }
    }
  }

  async close() {
    await this.pool.end();
  }
}

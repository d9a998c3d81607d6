// Subscriptions on the channel of the benchmark that none of its notifications match: each asks for a value of its own.

/** @typedef {import('./database.mjs').Database} Database */

const owner = 'volume';

/** As the service changes its catalogue: the version is raised first, and each row is given it (src/catalogue). */
const raiseVersion = 'UPDATE catalogue SET version = version + 1';
const version = '(SELECT version FROM catalogue)';

/**
 * They are there, and deleted, so that nothing is matched with them yet.
 * @param {Database} database
 * @param {{ rows: number, channel: string, filter: string }} what
 */
export async function addDeleted(database, { rows, channel, filter }) {
  const filters = `json_build_object('${filter}', (100000000 + n)::text)`;
  await database.change([
    raiseVersion,
    `INSERT INTO subscription (id, owner_client_id, callback_url, auth, channels, version, deleted_at)
     SELECT gen_random_uuid(), '${owner}', 'http://127.0.0.1:9/' || n, 'Bearer volume',
       json_build_array(json_build_object('channel', '${channel}', 'filters', ${filters})), ${version}, now()
     FROM generate_series(1, ${rows}) AS n`,
  ]);
}

/**
 * @param {Database} database
 * @param {boolean} areThere
 */
export async function setThere(database, areThere) {
  await database.change([
    raiseVersion,
    `UPDATE subscription SET deleted_at = ${areThere ? 'NULL' : 'now()'}, version = ${version}
     WHERE owner_client_id = '${owner}'`,
  ]);
  await database.query('VACUUM (ANALYZE) subscription'); // as autovacuum would have by then
}

/**
 * Once every process has read that they are deleted.
 * @param {Database} database
 */
export async function remove(database) {
  await database.query('DELETE FROM subscription WHERE owner_client_id = $1', [owner]);
}

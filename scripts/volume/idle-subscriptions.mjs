// Subscriptions on the channel of the benchmark that none of its notifications match: each asks for a value of its own.

/** @typedef {import('./database.mjs').Database} Database */

/**
 * As the service changes its catalogue: the version is raised first, and each row is given it (src/catalogue). A row
 * that is no longer there would be one that the processes never hear of again: those of a case stay, deleted, under an
 * owner of their own.
 */
const raiseVersion = 'UPDATE catalogue SET version = version + 1';
const version = '(SELECT version FROM catalogue)';

/**
 * They are there, and deleted, so that nothing is matched with them yet.
 * @param {Database} database
 * @param {{ owner: string, rows: number, channel: string, filter: string }} what
 */
export async function addDeleted(database, { owner, rows, channel, filter }) {
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
 * @param {{ owner: string, areThere: boolean }} what
 */
export async function setThere(database, { owner, areThere }) {
  await database.change([
    raiseVersion,
    `UPDATE subscription SET deleted_at = ${areThere ? 'NULL' : 'now()'}, version = ${version}
     WHERE owner_client_id = '${owner}'`,
  ]);
  await database.query('VACUUM (ANALYZE) subscription'); // as autovacuum would have by then
}

import { CannotConnect } from '../cannot-connect.js';

/** Something of a server, a database or a role that Heraut cannot work with, and what an operator does about it. */
export interface Unfit {
  found: string;
  advice: string;
}

/** On one connection, for which no parameters are bound. */
export type Ask = <Row>(text: string) => Promise<Row[]>;

/** @throws {CannotConnect} */
export async function refuseUnfit(found: Promise<Unfit | undefined>): Promise<void> {
  const unfit = await found;
  if (unfit) throw new CannotConnect('Postgres', new Error(unfit.found), unfit.advice);
}

const ofBytes = 'SQL_ASCII';

export const asUtf8 =
  'a database keeps the encoding that it was made with: createdb --encoding=UTF8 --template=template0, and restore a pg_dump of this one into it.';

/** Whether its functions on texts see bytes where a character is beyond ASCII. */
export async function isOfBytes(ask: Ask): Promise<boolean> {
  const [row] = await ask<{ encoding: string }>(`SELECT current_setting('server_encoding') AS encoding`);
  return row!.encoding === ofBytes;
}

/**
 * In any other encoding than UTF-8 there are characters that cannot be stored. A notification with one would be
 * refused, and of a delivery whose receiver answers with one the end could never be written down. SQL_ASCII is none: it
 * keeps the bytes as they come (`isOfBytes`).
 */
export async function encodingUnfit(ask: Ask): Promise<Unfit | undefined> {
  const [row] = await ask<{ encoding: string }>(`SELECT current_setting('server_encoding') AS encoding`);
  if (row!.encoding === 'UTF8' || row!.encoding === ofBytes) return undefined;
  return {
    found: `its database has the encoding ${row!.encoding}`,
    advice: `Heraut needs UTF8, and ${asUtf8}`,
  };
}

/**
 * How far a subscriber that fetches may read is told by the beginnings of open transactions (src/ledger/horizon.ts).
 * Postgres shows those of a session to members of the role that signed in, which after SET ROLE may not be this one.
 */
export async function visibilityUnfit(ask: Ask): Promise<Unfit | undefined> {
  const [row] = await ask<{ session: string; role: string; is_noted: boolean; is_seen: boolean }>(
    `SELECT quote_ident(session_user) AS session, quote_ident(current_user) AS role,
            current_setting('track_activities')::boolean AS is_noted,
            pg_has_role(session_user, 'USAGE') OR pg_has_role('pg_read_all_stats', 'USAGE') AS is_seen`,
  );
  const { session, role, is_noted, is_seen } = row!;
  if (!is_noted)
    return {
      found: 'it does not note when transactions began: track_activities is off',
      advice:
        'Set track_activities on, for the server, the database and the role. A subscriber that fetches would never get a notification whose commit took long.',
    };
  if (is_seen) return undefined;
  return {
    found: `the role ${role} does not see when transactions of ${session} began, as which it signs in`,
    advice: `GRANT pg_read_all_stats TO ${role}. Without it a subscriber that fetches would never get a notification whose commit took long.`,
  };
}

/**
 * After a restore by another role, the tables may lie in a schema that its search_path does not lead to: a second
 * installation, empty and ready, would be made beside them. One that is meant to be there has a search_path of its own,
 * or the schema of its role with tables that are no concern of this one.
 */
export async function tablesElsewhere(ask: Ask): Promise<Unfit | undefined> {
  const [row] = await ask<{ role_here: string; role: string; elsewhere: string; here: string }>(
    `SELECT quote_ident(session_user) || ' IN DATABASE ' || quote_ident(current_database()) AS role_here,
            quote_ident(session_user) AS role, quote_ident(nspname) AS elsewhere, quote_ident(current_schema()) AS here
     FROM pg_namespace schema
     WHERE to_regclass(quote_ident(current_schema()) || '.migrations') IS NULL AND nspname <> current_schema()
       AND (SELECT source FROM pg_settings WHERE name = 'search_path') NOT IN ('database', 'user', 'database user', 'client', 'session')
       AND (SELECT count(*) FROM pg_class WHERE relnamespace = schema.oid AND relname IN ('migrations', 'catalogue', 'delivery')
              AND (current_schema() <> current_user OR pg_has_role(relowner, 'USAGE'))) = 3
     ORDER BY nspname LIMIT 1`,
  );
  if (!row) return undefined;
  const { role_here, role, elsewhere, here } = row;
  return {
    found: `Heraut’s tables are in the schema ${elsewhere}, and ${role} would make new ones in ${here}`,
    advice: `ALTER ROLE ${role_here} SET search_path = ${elsewhere}, and give that role the rights to it. If another installation is meant to be beside that one, better give it a database of its own; else ALTER ROLE ${role_here} SET search_path = ${here}, and GRANT pg_read_all_stats TO ${role}, and to the role of the other one: docs/running.md#roles.`,
  };
}

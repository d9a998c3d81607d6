import type { UserRole } from '../auth/user-roles.js';
import type { WayIn } from '../auth/user-sessions.js';
import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';
import type { Session } from './session.js';

export interface SessionRow {
  user_id: string;
  name: string;
  role: UserRole;
  via: WayIn;
  signature: string | null;
  ends_at: Date;
  expires_at: Date;
}

export const sessionOf = (row: SessionRow): Session => ({
  id: row.user_id,
  name: row.name,
  role: row.role,
  via: row.via,
  signature: row.signature,
  endsAt: row.ends_at.getTime(),
  expiresAt: row.expires_at.getTime(),
});

export const insertSession = statement(
  'begin-session',
  `INSERT INTO session (token_hash, user_id, name, role, via, signature, began_at, ends_at, expires_at)
   VALUES ($token_hash, $user_id, $name, $role, $via, $signature, $now::timestamptz, $ends_at::timestamptz, $expires_at::timestamptz)`,
);

/**
 * The session of a token, and that it was used. It is written where its end lies before `renew_before` alone, so that
 * most looks write nothing.
 */
export const findSession = statement(
  'find-session',
  `WITH used AS (
     UPDATE session SET ends_at = least(expires_at, $ends_at::timestamptz)
     WHERE token_hash = $token_hash AND ends_at > $now::timestamptz
       AND ends_at < least(expires_at, $renew_before::timestamptz)
     RETURNING ends_at
   )
   SELECT user_id, name, role, via, signature, coalesce((SELECT ends_at FROM used), ends_at) AS ends_at, expires_at
   FROM session WHERE token_hash = $token_hash AND ends_at > $now::timestamptz`,
);

/** Of these, those that have not ended. */
export const findStanding = statement(
  'find-standing-sessions',
  `SELECT token_hash, user_id, name, role, via, signature, ends_at, expires_at FROM session
   WHERE token_hash = ANY ($token_hashes::text[]) AND ends_at > $now::timestamptz`,
);

export const endSession = statement('end-session', 'DELETE FROM session WHERE token_hash = $token_hash');

export const endTogether = 1000;

/** A part of them: it is repeated until it finds fewer. */
const deleteSome = (name: string, table: string, condition: string) =>
  statement(
    name,
    `DELETE FROM ${table} WHERE token_hash = ANY (ARRAY(
       SELECT token_hash FROM ${table} ${condition} LIMIT ${endTogether}
     ))`,
  );

export const endOfUser = deleteSome('end-sessions-of-user', 'session', 'WHERE user_id = $user_id');
export const endOfAll = deleteSome('end-all-sessions', 'session', '');
export const sweepEnded = deleteSome('sweep-sessions', 'session', 'WHERE ends_at <= now()');

export const insertTicket = statement(
  'make-sign-in-ticket',
  `INSERT INTO sign_in_ticket (token_hash, client_id, signature, expires_at)
   VALUES ($token_hash, $client_id, $signature, $expires_at::timestamptz)`,
);

/** For a look at its application before it is used. */
export const findTicket = statement(
  'find-sign-in-ticket',
  'SELECT client_id FROM sign_in_ticket WHERE token_hash = $token_hash',
);

/** The one that deletes it is the one that uses it. */
export const takeTicket = statement(
  'take-sign-in-ticket',
  'DELETE FROM sign_in_ticket WHERE token_hash = $token_hash RETURNING client_id, signature, expires_at > $now::timestamptz AS is_good',
);

export const sweepTickets = deleteSome('sweep-sign-in-tickets', 'sign_in_ticket', 'WHERE expires_at <= now()');

/** Upkeep: forgets the sessions and tickets whose time is over. */
export async function sweepSessions(postgres: Postgres, stopping: AbortSignal): Promise<void> {
  for (const sweep of [sweepEnded, sweepTickets])
    while ((await postgres.affected(sweep)) === endTogether && !stopping.aborted);
}

import type { Postgres } from '../infra/postgres/postgres.js';
import { statement } from '../infra/postgres/statement.js';

/**
 * A name under which something happens once: a request that may be repeated, or a channel's content. A row of
 * `once_key`.
 */
export interface OnceKey {
  /** Client id of the application whose key it is; empty for content, which is the same for every publisher. */
  application: string;
  /** The same key of another operation is another key. */
  operation: 'publish' | 'put' | 'deduplicate' | CreatingOperation;
  key: string;
  /** Tells whether a repeated request is the same; null for content. */
  requestHash: string | null;
  /** How long it is remembered, counted from when it is reserved. */
  keepSeconds: number;
}

/** The operations with which the admin API creates something under a key. */
export type CreatingOperation =
  | 'create-application'
  | 'create-subscription'
  | 'create-replay'
  | 'cancel-deliveries'
  | 'close-deliveries';

/** Passes over a row that is just being reserved anew: each waiting for the other could end in a deadlock. */
const sweep = statement(
  'sweep-once-keys',
  `DELETE FROM once_key WHERE ctid = ANY (ARRAY(
     SELECT ctid FROM once_key
     WHERE expires_at >= to_timestamp($since_ms::float8 / 1000) AND expires_at <= now() LIMIT $limit FOR UPDATE SKIP LOCKED
   ))`,
);

/**
 * Upkeep: forgets keys whose time has been over since then, up to `limit`.
 * @param sinceMs milliseconds since 1970, by Postgres' clock
 * @returns how many
 */
export const sweepOnceKeys = (postgres: Postgres, sinceMs: number, limit: number): Promise<number> =>
  postgres.affected(sweep, { since_ms: sinceMs, limit });

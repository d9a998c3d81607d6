import { statement, type Statement } from '../infra/postgres/statement.js';
import { lowestId } from './partitions.js';

/**
 * Reads some of the subscriptions for which `table` notes that a rule of the dispatcher has work: those that follow
 * `$after` (null: the first ones) in the order of their ids. So one that stays noted keeps no other from being read.
 */
export const notedIn = (name: string, table: string, columns: string): Statement =>
  statement(
    name,
    `SELECT subscription_id, ${columns} FROM ${table}
     WHERE subscription_id > coalesce($after::uuid, '${lowestId}')
     ORDER BY subscription_id LIMIT $limit`,
  );

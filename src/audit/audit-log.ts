import type { EntityManager } from 'typeorm';
import type { Query } from '../infra/postgres/postgres.js';
import { statement, valuesOf } from '../infra/postgres/statement.js';
import { currentAuthor } from './author.js';
import { differing, type Fields } from './differing.js';

/** A change of the configuration, or what an operator did with a delivery. */
export interface Change {
  /** Kind of the subject, and what was done to it: `subscription.paused`. */
  action: string;
  /** Kind and id: `subscription/<uuid>`. */
  subject: string;
  /** Without secrets. Null: there was, or is, no such subject. Of the two, the log keeps the fields that differ. */
  before: Fields;
  after: Fields;
  /** Names of secrets that are others than before; of a secret nothing else is kept. */
  changedSecrets?: readonly string[];
}

/** A transaction of TypeORM, or one of the hand-written statements. */
type Transaction = Pick<EntityManager, 'query'> | Query;

// Not now(): that is when the transaction began, before it waited for other changes of the catalogue.
const insertEntry = statement(
  'note-change',
  `INSERT INTO audit_entry (at, client, via, address, request_id, action, subject, before, after, changed_secrets)
   VALUES (clock_timestamp(), $client, $via, $address, $request_id, $action, $subject, $before, $after, $changed_secrets)`,
);

export const AuditLog = {
  /**
   * Notes a change as that of the author of the request that is being carried out, or of Heraut itself where there is none.
   * @param transaction that of the change: where this fails, the change does not happen
   */
  async note(transaction: Transaction, change: Change): Promise<void> {
    const author = currentAuthor();
    const [before, after] = differing(change.before, change.after);
    const values = {
      client: author?.client ?? null,
      via: author?.via ?? null,
      address: author?.address ?? null,
      request_id: author?.requestId ?? null,
      action: change.action,
      subject: change.subject,
      before: before && JSON.stringify(before),
      after: after && JSON.stringify(after),
      changed_secrets: change.changedSecrets ?? [],
    };
    if (typeof transaction === 'function') await transaction(insertEntry, values);
    else await transaction.query(insertEntry.text, valuesOf(insertEntry, values));
  },
};

import type { EntityManager } from 'typeorm';
import type { Query } from '../infra/postgres/postgres.js';
import { rowsOf, statement, valuesOf } from '../infra/postgres/statement.js';
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

/** As it is stored. */
interface Entry {
  action: string;
  subject: string;
  before: Fields;
  after: Fields;
  changedSecrets: readonly string[];
}

const asJson = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));

const entries = rowsOf<Entry>('entry', {
  action: ['text', ({ action }) => action],
  subject: ['text', ({ subject }) => subject],
  before: ['text', ({ before }) => asJson(before)],
  after: ['text', ({ after }) => asJson(after)],
  secrets: ['text', ({ changedSecrets }) => asJson(changedSecrets)],
});

// Not now(): that is when the transaction began, before it waited for other changes of the catalogue.
const insertEntries = statement(
  'note-changes',
  `INSERT INTO audit_entry (at, client, via, address, request_id, action, subject, before, after, bytes,
     changed_secrets)
   SELECT clock_timestamp(), $client::text, $via::text, $address::text, $request_id::text, action, subject,
     before::json, after::json, coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0),
     ARRAY(SELECT json_array_elements_text(secrets::json))
   FROM ${entries.from}`,
);

export const AuditLog = {
  /**
   * Notes a change as that of the author of the request that is being carried out, or of Heraut itself where there is
   * none.
   * @param transaction that of the change: where this fails, the change does not happen
   */
  note(transaction: Transaction, change: Change): Promise<void> {
    return AuditLog.noteAll(transaction, [change]);
  },

  /** The same for several at once, in their order. */
  async noteAll(transaction: Transaction, changes: readonly Change[]): Promise<void> {
    if (changes.length === 0) return;
    const author = currentAuthor();
    const values = {
      client: author?.client ?? null,
      via: author?.via ?? null,
      address: author?.address ?? null,
      request_id: author?.requestId ?? null,
      ...entries.bind(changes.map(entryOf)),
    };
    if (typeof transaction === 'function') await transaction(insertEntries, values);
    else await transaction.query(insertEntries.text, valuesOf(insertEntries, values));
  },
};

/** Whether there is anything to note: all that can be changed is noted, or named among the secrets. */
export function isAnyChange(change: Change): boolean {
  const { before, after, changedSecrets } = entryOf(change);
  const isAny = (fields: Fields) => fields === null || Object.keys(fields).length > 0;
  return isAny(before) || isAny(after) || changedSecrets.length > 0;
}

function entryOf({ action, subject, changedSecrets = [], ...change }: Change): Entry {
  const [before, after] = differing(change.before, change.after);
  return { action, subject, before, after, changedSecrets };
}

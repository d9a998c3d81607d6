import type { Query } from '../infra/postgres/postgres.js';
import { rowsOf, statement, type Column } from '../infra/postgres/statement.js';
import type { OnceKey } from './once-key.js';

/** A notification that was refused because one of its keys is reserved. */
export interface RefusedItem {
  id: string;
  request: OnceKey | null;
  content: OnceKey | null;
}

export type Refusal =
  /** Nothing was written: the request's key is reserved, by a request with this hash. */
  | {
      kind: 'repeated';
      requestHash: string | null;
      /** The result of that request: its own notification or, with `isDuplicate`, the one whose content it repeats. */
      notificationId: string;
      isDuplicate: boolean;
    }
  /** Only the request's key was written; it leads to the notification that has the content. */
  | { kind: 'duplicate'; notificationId: string }
  /**
   * Nothing was written: the key in its way expired a moment later or, with `error`, could not be read. Accepting it
   * again decides.
   */
  | { kind: 'undecided'; error?: unknown };

interface Redirected extends OnceKey {
  resultId: string;
}

const names = {
  application: ['text', (key) => key.application],
  operation: ['text', (key) => key.operation],
  key: ['text', (key) => key.key],
} satisfies Record<string, Column<OnceKey>>;
const wanted = rowsOf<OnceKey>('wanted', names);
const redirected = rowsOf<Redirected>('redirected', { ...names, result_id: ['uuid', (key) => key.resultId] });

interface OnceKeyRow extends Pick<OnceKey, 'application' | 'operation' | 'key'> {
  result_id: string;
  request_hash: string | null;
  is_duplicate: boolean;
}

const findKeys = statement(
  'find-once-keys',
  `SELECT k.application, k.operation, k.key, k.result_id, k.request_hash, k.is_duplicate
   FROM ${wanted.from} JOIN once_key k USING (application, operation, key)`,
);

/** Requests that repeat content published before: asked again, they get the notification with that content. */
const redirectKeys = statement(
  'redirect-once-keys',
  `UPDATE once_key k SET result_id = redirected.result_id, is_duplicate = true
   FROM ${redirected.from}
   WHERE k.application = redirected.application AND k.operation = redirected.operation AND k.key = redirected.key`,
);

/**
 * Finds out what the keys that were in the way lead to. A duplicate that has a request reserved its key in vain: the
 * key is made to lead to the first notification, in the transaction that reserved it. There no refusal is undecided,
 * because a row that was in the way stays locked until the commit, although it was not changed.
 *
 * @param repeated refused for their request
 * @param duplicates refused for their content; their requests, if any, have been reserved
 * @returns by id
 */
export async function decideRefused(
  query: Query,
  repeated: readonly RefusedItem[],
  duplicates: readonly RefusedItem[],
): Promise<Map<string, Refusal>> {
  const inTheWay = [...repeated.map(({ request }) => request!), ...duplicates.map(({ content }) => content!)];
  const rows = await query<OnceKeyRow>(findKeys, wanted.bind(inTheWay));
  const found = new Map(rows.map((row) => [nameOf(row), row]));
  const refusals = new Map<string, Refusal>();
  const firstOf = new Map<string, string>();
  const toRedirect: Redirected[] = [];
  for (const { id, request, content } of duplicates) {
    const first = found.get(nameOf(content!))?.result_id;
    refusals.set(id, first === undefined ? { kind: 'undecided' } : { kind: 'duplicate', notificationId: first });
    if (first === undefined || !request) continue;
    firstOf.set(id, first);
    toRedirect.push({ ...request, resultId: first });
  }
  for (const { id, request } of repeated) {
    const row = found.get(nameOf(request!));
    // The request that it repeats may be a duplicate of this same batch, whose key is being redirected.
    const first = row && firstOf.get(row.result_id);
    refusals.set(
      id,
      row
        ? {
            kind: 'repeated',
            requestHash: row.request_hash,
            notificationId: first ?? row.result_id,
            isDuplicate: row.is_duplicate || first !== undefined,
          }
        : { kind: 'undecided' },
    );
  }
  if (toRedirect.length > 0) await query(redirectKeys, redirected.bind(toRedirect));
  return refusals;
}

const nameOf = ({ application, operation, key }: Pick<OnceKey, 'application' | 'operation' | 'key'>): string =>
  `${operation}\n${application}\n${key}`;

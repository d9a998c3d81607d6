import type { Query } from '../infra/postgres/postgres.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';
import {
  acceptedColumns,
  bindDestination,
  type Acceptance,
  type Accepted,
  type Destination,
  isForQueue,
  type Decision,
} from './acceptance.js';
import { decideRefused, type Refusal } from './decide-refused.js';
import type { HeldReason } from './delivery.js';
import { holding } from './held-subscriptions.js';
import { liningUp, nextPlace } from './line-up.js';
import { current, found, mayWrite, readFound, type Deadline, type Found } from './may-write.js';
import { numbered, type Numbered } from './numbered.js';
import type { OnceKey } from './once-key.js';

const notificationsOnTerms = rowsOf<Accepted>('notification', {
  ...acceptedColumns,
  // Times that do not apply are infinite: in an array with a null each lookup by subscript would start at the
  // beginning.
  not_before_ms: ['float8', (item) => item.notBefore ?? -Infinity],
  keeps_place: ['bool', (item) => item.keepsPlace],
  expires_ms: ['float8', (item) => item.expiresAt ?? Infinity],
  request_key: ['text', (item) => item.request?.key ?? null],
});

interface PlannedDelivery {
  subscriptionId: string;
  heldFor: HeldReason | undefined;
  objectKey: string | null;
}
const deliveriesOnTerms = rowsOf<Numbered<PlannedDelivery>>('delivery', {
  nr: ['int', (item) => item.nr],
  subscription_id: ['uuid', (item) => item.value.subscriptionId],
  held_for: ['text', (item) => item.value.heldFor ?? ''],
  object_key: ['uuid', (item) => item.value.objectKey],
});

const keysAs = (alias: string) =>
  rowsOf<Numbered<OnceKey>>(alias, {
    nr: ['int', (item) => item.nr],
    application: ['text', (item) => item.value.application],
    operation: ['text', (item) => item.value.operation],
    key: ['text', (item) => item.value.key],
    request_hash: ['text', (item) => item.value.requestHash],
    keep_seconds: ['int', (item) => item.value.keepSeconds],
  });
const requests = keysAs('request');
const contents = keysAs('content');

/** Ids of the notifications that were refused, or are not for the queue now. */
interface InsertedOnTerms extends Found {
  repeated: string[];
  duplicates: string[];
  expired: string[];
  scheduled: string[];
  /** Deliveries in line: notification/subscription. */
  in_line: string[];
}

/**
 * Reserves the keys that are free or have expired. Of several notifications that want the same key the first tries,
 * because one statement may write a row only once. It either reserves the key or finds it reserved, so the others are
 * refused in any case. In order: batches that want the same keys wait for each other instead of deadlocking.
 */
const reserve = (wanted: string) => `
    INSERT INTO once_key AS k (application, operation, key, result_id, request_hash, expires_at)
    SELECT application, operation, key, id, request_hash, now() + keep_seconds * interval '1 s'
    FROM (
      SELECT *, row_number() OVER (PARTITION BY application, operation, key ORDER BY nr) AS turn FROM ${wanted}
    ) AS wanted
    WHERE turn = 1 ORDER BY application, operation, key
    ON CONFLICT (application, operation, key) DO UPDATE SET
      result_id = EXCLUDED.result_id, request_hash = EXCLUDED.request_hash, expires_at = EXCLUDED.expires_at,
      is_duplicate = false
    WHERE k.expires_at <= now()
    RETURNING k.result_id`;

/**
 * The same for notifications that may happen only once, later, or while they are fresh. Their keys are reserved by the
 * statement that writes them, so the unique constraint decides between processes (docs/decisions/0017): first those of
 * requests, then those of contents, but only for notifications whose request was not carried out before. The outcome is
 * as if the batch had been accepted one by one, in order.
 *
 * One that will be too old to be sent reserves no content, or the next one, which is not, would be left out for it and
 * nobody would get either. It still is a duplicate where the content is reserved, of which its publisher hears more
 * than of a dead letter. That key is locked: it must not be forgotten before it is read (see `decideRefused`).
 *
 * A join would compare every row with every other (see `preferIndexes`): hence subscripts, and NOT IN, which hashes.
 *
 * A delivery that may not be sent now is held at once, and its subscription's row is made or refreshed with it: then a
 * dispatcher releases it (held-subscriptions.ts). One that keeps order lines up (line-up.ts), unless it is scheduled:
 * then it does when it is due. One that is dated a moment ahead, and so is not sent yet, lines up now: `next_at` keeps
 * its date while it is held for its order.
 */
const insertOnTerms = statement(
  'accept-on-terms',
  `
  WITH ${current},
  request AS MATERIALIZED (
    SELECT *, (${notificationsOnTerms.array('id')})[nr] AS id FROM ${requests.from} WHERE ${mayWrite}
  ),
  first_request AS (${reserve('request')}),
  repeated AS MATERIALIZED (SELECT id FROM request WHERE id NOT IN (SELECT result_id FROM first_request)),
  content AS MATERIALIZED (
    SELECT *, min(nr) FILTER (WHERE is_sendable) OVER (PARTITION BY application, operation, key) AS first_nr
    FROM (
      SELECT *, (${notificationsOnTerms.array('id')})[nr] AS id,
        to_timestamp((${notificationsOnTerms.array('expires_ms')})[nr] / 1000)
          > GREATEST(to_timestamp((${notificationsOnTerms.array('not_before_ms')})[nr] / 1000), now()) AS is_sendable
      FROM ${contents.from}
    ) AS c
    WHERE ${mayWrite} AND id NOT IN (SELECT id FROM repeated)
  ),
  sendable AS MATERIALIZED (SELECT * FROM content WHERE is_sendable),
  first_content AS (${reserve('sendable')}),
  late_duplicate AS MATERIALIZED (
    SELECT c.id FROM content AS c CROSS JOIN LATERAL (
      SELECT FROM once_key k
      WHERE k.application = c.application AND k.operation = c.operation AND k.key = c.key AND k.expires_at > now()
      FOR KEY SHARE SKIP LOCKED
    ) AS k
    WHERE NOT is_sendable
  ),
  duplicate AS MATERIALIZED (
    SELECT id FROM sendable WHERE id NOT IN (SELECT result_id FROM first_content)
    UNION ALL
    SELECT id FROM content WHERE NOT is_sendable AND (first_nr < nr OR id IN (SELECT id FROM late_duplicate))
  ),
  refused AS MATERIALIZED (SELECT id FROM repeated UNION ALL SELECT id FROM duplicate),
  accepted AS MATERIALIZED (
    SELECT id, channel, publisher, body, request_key, trace_parent,
      to_timestamp(not_before_ms / 1000) AS not_before, to_timestamp(expires_ms / 1000) AS expires_at
    FROM ${notificationsOnTerms.from}
    WHERE ${mayWrite} AND id NOT IN (SELECT id FROM refused)
  ),
  notifications AS (
    INSERT INTO notification (id, channel, publisher, body, request_key, trace_parent, not_before)
    SELECT id, channel, publisher, body, request_key, trace_parent, nullif(not_before, '-infinity') FROM accepted
  ),
  planned AS MATERIALIZED (
    SELECT (${notificationsOnTerms.array('id')})[nr] AS id, nr, subscription_id, object_key,
      nullif(held_for, '')::held_reason AS held_for,
      to_timestamp((${notificationsOnTerms.array('not_before_ms')})[nr] / 1000) AS not_before,
      (${notificationsOnTerms.array('keeps_place')})[nr] AS keeps_place,
      to_timestamp((${notificationsOnTerms.array('expires_ms')})[nr] / 1000) AS expires_at
    FROM ${deliveriesOnTerms.from}
    WHERE ${mayWrite}
  ),
  judged AS MATERIALIZED (
    SELECT *, CASE
        WHEN expires_at <= now() THEN 'expired' WHEN not_before > now() THEN 'waiting' WHEN held_for IS NOT NULL THEN 'held'
        ELSE $state
      END::delivery_state AS state,
      object_key IS NOT NULL AND expires_at > now() AND (not_before <= now() OR keeps_place) AS lines_up
    FROM planned WHERE id NOT IN (SELECT id FROM refused)
  ),
  ${liningUp('(SELECT id AS notification_id, subscription_id, object_key, nr FROM judged WHERE lines_up) AS lining_up')},
  placed AS MATERIALIZED (
    SELECT id, subscription_id, object_key, not_before, expires_at,
      CASE WHEN is_behind THEN 'held' ELSE state END AS state,
      CASE WHEN is_behind THEN 'order' ELSE held_for END AS held_for,
      CASE WHEN is_behind THEN ${nextPlace} WHEN lines_up THEN 0 END AS turn_nr
    FROM (
      SELECT *, (id, subscription_id) IN (SELECT notification_id, subscription_id FROM behind) AS is_behind FROM judged
    ) AS j
  ),
  deliveries AS (
    INSERT INTO delivery
      (notification_id, subscription_id, object_key, turn_nr, state, held_for, held_since, next_at, queued_at, process,
        expires_at, ended_at)
    SELECT id, subscription_id, object_key, turn_nr, state,
      CASE WHEN state = 'held' THEN held_for END,
      CASE WHEN state = 'held' THEN now() END,
      CASE state
        WHEN 'waiting' THEN GREATEST(not_before, now() + coalesce($delay_ms, 0) * interval '1 ms')
        WHEN 'held' THEN CASE WHEN not_before > now() THEN not_before END
        WHEN 'queued' THEN now() + $lease_ms::float8 * interval '1 ms'
      END,
      CASE WHEN state = 'queued' AND ${isForQueue} THEN now() END,
      CASE WHEN state = 'queued' THEN $process END,
      nullif(expires_at, 'infinity'),
      CASE WHEN state = 'expired' THEN now() END
    FROM placed
  ),
  in_line AS (
    INSERT INTO in_line (subscription_id, object_key, turn_nr, notification_id)
    SELECT subscription_id, object_key, turn_nr, id FROM placed WHERE turn_nr > 0
  ),
  ${holding("(SELECT subscription_id FROM placed WHERE state = 'held' AND held_for <> 'order')")}
  SELECT ${found},
    ARRAY(SELECT id FROM repeated)::text[] AS repeated,
    ARRAY(SELECT id FROM duplicate)::text[] AS duplicates,
    ARRAY(SELECT id FROM accepted WHERE expires_at <= now())::text[] AS expired,
    ARRAY(SELECT id FROM accepted WHERE not_before > now())::text[] AS scheduled,
    ARRAY(SELECT notification_id || '/' || subscription_id FROM behind) AS in_line
  FROM current`,
);

export async function acceptOnTerms(
  query: Query,
  version: number,
  batch: readonly Accepted[],
  destination: Destination,
  deadline: Deadline,
  decide: typeof decideRefused,
): Promise<Acceptance> {
  const [row] = await query<InsertedOnTerms>(insertOnTerms, {
    version,
    begin_by_ms: deadline.at,
    ...notificationsOnTerms.bind(batch),
    ...requests.bind(numbered(batch, ({ request }) => request)),
    ...contents.bind(numbered(batch, ({ content }) => content)),
    ...deliveriesOnTerms.bind(planned(batch)),
    ...bindDestination(destination),
  });
  const answer = readFound(row!);
  if (answer.version !== version) return { ...answer, decisions: [] };
  const [repeated, duplicates] = [pick(batch, row!.repeated), pick(batch, row!.duplicates)];
  const isAllAccepted = repeated.length + duplicates.length === 0;
  const refused = isAllAccepted ? undefined : await decide(query, repeated, duplicates);
  const [expired, scheduled] = [new Set(row!.expired), new Set(row!.scheduled)];
  const inLine = bySlash(row!.in_line);
  const decisions = batch.map(({ id }): Decision => {
    if (expired.has(id)) return { kind: 'accepted', handedTo: 'nobody' };
    const isForNow = destination.state !== 'waiting' && !scheduled.has(id);
    const handedTo = isForNow ? 'worker' : 'dispatcher';
    return refused?.get(id) ?? { kind: 'accepted', handedTo, inLine: inLine.get(id) };
  });
  return { ...answer, decisions };
}

/** Of texts `one/other`, all the others by each one. */
function bySlash(pairs: readonly string[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const pair of pairs) {
    const [one, other] = pair.split('/') as [string, string];
    found.set(one, (found.get(one) ?? new Set()).add(other));
  }
  return found;
}

/**
 * Outside a transaction, what was accepted is committed before this: its publishers must hear so, whatever keeps the
 * ledger from saying why the others were refused. Those are undecided: to accept them again tells, or fails for them
 * alone.
 */
export const decideOrUndecided: typeof decideRefused = async (query, repeated, duplicates) => {
  try {
    return await decideRefused(query, repeated, duplicates);
  } catch (error) {
    return new Map([...repeated, ...duplicates].map(({ id }): [string, Refusal] => [id, { kind: 'undecided', error }]));
  }
};

function pick(batch: readonly Accepted[], ids: readonly string[]): Accepted[] {
  if (ids.length === 0) return [];
  const wanted = new Set(ids);
  return batch.filter(({ id }) => wanted.has(id));
}

function planned(batch: readonly Accepted[]): Numbered<PlannedDelivery>[] {
  return batch.flatMap(({ subscriptionIds, heldFor, inOrder }, index) =>
    subscriptionIds.map((subscriptionId) => ({
      nr: index + 1,
      value: {
        subscriptionId,
        heldFor: heldFor.get(subscriptionId),
        objectKey: inOrder?.subscriptionIds.has(subscriptionId) ? inOrder.objectKey : null,
      },
    })),
  );
}

import type { Postgres, Query } from '../infra/postgres/postgres.js';
import { rowsOf, statement, type Column, type Values } from '../infra/postgres/statement.js';
import { decideRefused, type Refusal } from './decide-refused.js';
import { expiredCounted } from './ledger.counters.js';
import {
  current,
  DeadlinePassed,
  found,
  mayWrite,
  noDeadline,
  readFound,
  type Deadline,
  type Found,
} from './may-write.js';
import { numbered, type Numbered } from './numbered.js';
import type { HeldReason } from './delivery.js';
import type { OnceKey } from './once-key.js';

/** A notification as it is accepted, with the subscriptions that get it. */
export interface Accepted {
  id: string;
  channel: string;
  publisher: string;
  body: string;
  subscriptionIds: string[];
  /** Of these, the ones whose deliveries may not be sent now, and why. */
  heldFor: ReadonlyMap<string, HeldReason>;
  /** The publisher's key: under it the request is carried out once. */
  request: OnceKey | null;
  /** The channel's key of this content: under it the content is published once. */
  content: OnceKey | null;
  /** Milliseconds since 1970; null: may be sent at once. */
  notBefore: number | null;
  /** Milliseconds since 1970, from when on it is not sent any more; null: always sent. */
  expiresAt: number | null;
}

/** Where accepted deliveries go: to the queue, or, where it would refuse them, to the dispatcher after a delay. */
export type HandOut =
  /** `process`: id of the process whose memory is the queue; null with a broker. */
  { state: 'queued'; process: string | null } | { state: 'waiting'; delayMs: number };

export type Verdict =
  /** Committed. `nobody`: it was too old already, its deliveries are recorded as expired. */
  { kind: 'accepted'; handedTo: 'queue' | 'dispatcher' | 'nobody' } | Refusal;

export interface Acceptance {
  /** The catalogue version found. Nothing was written unless it is the one that was asked for. */
  version: number;
  /** Milliseconds since 1970 by the ledger's clock: when this was written. */
  queuedAt: number;
  /** One per notification, in order; empty when the version is another one. */
  verdicts: Verdict[];
}

const columns = {
  id: ['uuid', (item) => item.id],
  channel: ['text', (item) => item.channel],
  publisher: ['text', (item) => item.publisher],
  body: ['text', (item) => item.body],
} satisfies Record<string, Column<Accepted>>;
const notifications = rowsOf<Accepted>('notification', columns);
const notificationsOnTerms = rowsOf<Accepted>('notification', {
  ...columns,
  // Times that do not apply are infinite: in an array with a null each lookup by subscript would start at the beginning.
  not_before_ms: ['float8', (item) => item.notBefore ?? -Infinity],
  expires_ms: ['float8', (item) => item.expiresAt ?? Infinity],
});

const deliveries = rowsOf<Numbered<string>>('delivery', {
  nr: ['int', (item) => item.nr],
  subscription_id: ['uuid', (item) => item.value],
});

interface PlannedDelivery {
  subscriptionId: string;
  heldFor: HeldReason | undefined;
}
const deliveriesOnTerms = rowsOf<Numbered<PlannedDelivery>>('delivery', {
  nr: ['int', (item) => item.nr],
  subscription_id: ['uuid', (item) => item.value.subscriptionId],
  held_for: ['text', (item) => item.value.heldFor ?? ''],
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

/** `held_at` is kept as exact as this, to spare writes; see forgetHeldSubscription. */
const refreshSeconds = 5;

/** Ids of the notifications that were refused, or are not for the queue now. */
interface InsertedOnTerms extends Found {
  repeated: string[];
  duplicates: string[];
  expired: string[];
  scheduled: string[];
}

/**
 * Commits notifications and their deliveries, or nothing: only while the catalogue is at the version they were matched with.
 * The statement's snapshot decides, so a subscription committed before it began is never missed (docs/decisions/0004). All
 * times are Postgres' own, so that a process whose clock is off neither hurries nor delays anything.
 */
const insertPlain = statement(
  'accept',
  `
  WITH ${current},
  notifications AS (
    INSERT INTO notification (id, channel, publisher, body)
    SELECT id, channel, publisher, body FROM ${notifications.from} WHERE ${mayWrite}
  ),
  deliveries AS (
    INSERT INTO delivery (notification_id, subscription_id, state, next_at, queued_at, process)
    SELECT (${notifications.array('id')})[nr], subscription_id, $state::delivery_state,
      now() + $delay_ms * interval '1 ms', CASE WHEN $state::text = 'queued' THEN now() END, $process
    FROM ${deliveries.from} WHERE ${mayWrite}
  )
  SELECT ${found} FROM current`,
);

/**
 * Reserves the keys that are free or have expired. Of several notifications that want the same key the first tries, because
 * one statement may write a row only once. It either reserves the key or finds it reserved, so the others are refused in any
 * case. In order: batches that want the same keys wait for each other instead of deadlocking.
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
 * requests, then those of contents, but only for notifications whose request was not carried out before. The outcome is as
 * if the batch had been accepted one by one, in order.
 *
 * A join would compare every row with every other (see `preferIndexes`): hence subscripts, and NOT IN, which hashes.
 *
 * A delivery that may not be sent now is held at once, and its subscription's row is made or refreshed with it: then a
 * dispatcher releases it (held-subscriptions.ts). Refreshed every few seconds only, because a batch that writes the row waits for
 * others that do.
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
    SELECT * FROM (SELECT *, (${notificationsOnTerms.array('id')})[nr] AS id FROM ${contents.from}) AS c
    WHERE ${mayWrite} AND id NOT IN (SELECT id FROM repeated)
  ),
  first_content AS (${reserve('content')}),
  duplicate AS MATERIALIZED (SELECT id FROM content WHERE id NOT IN (SELECT result_id FROM first_content)),
  refused AS MATERIALIZED (SELECT id FROM repeated UNION ALL SELECT id FROM duplicate),
  accepted AS MATERIALIZED (
    SELECT id, channel, publisher, body,
      to_timestamp(not_before_ms / 1000) AS not_before, to_timestamp(expires_ms / 1000) AS expires_at
    FROM ${notificationsOnTerms.from}
    WHERE ${mayWrite} AND id NOT IN (SELECT id FROM refused)
  ),
  notifications AS (
    INSERT INTO notification (id, channel, publisher, body, not_before)
    SELECT id, channel, publisher, body, nullif(not_before, '-infinity') FROM accepted
  ),
  planned AS MATERIALIZED (
    SELECT (${notificationsOnTerms.array('id')})[nr] AS id, subscription_id, nullif(held_for, '')::held_reason AS held_for,
      to_timestamp((${notificationsOnTerms.array('not_before_ms')})[nr] / 1000) AS not_before,
      to_timestamp((${notificationsOnTerms.array('expires_ms')})[nr] / 1000) AS expires_at
    FROM ${deliveriesOnTerms.from}
    WHERE ${mayWrite}
  ),
  placed AS MATERIALIZED (
    SELECT *, CASE
        WHEN expires_at <= now() THEN 'expired' WHEN not_before > now() THEN 'waiting' WHEN held_for IS NOT NULL THEN 'held'
        ELSE $state
      END::delivery_state AS state
    FROM planned WHERE id NOT IN (SELECT id FROM refused)
  ),
  deliveries AS (
    INSERT INTO delivery
      (notification_id, subscription_id, state, held_for, next_at, queued_at, process, expires_at, ended_at)
    SELECT id, subscription_id, state,
      CASE WHEN state = 'held' THEN held_for END,
      CASE WHEN state = 'waiting' THEN GREATEST(not_before, now() + coalesce($delay_ms, 0) * interval '1 ms') END,
      CASE WHEN state = 'queued' THEN now() END,
      CASE WHEN state = 'queued' THEN $process END,
      nullif(expires_at, 'infinity'),
      CASE WHEN state = 'expired' THEN now() END
    FROM placed
  ),
  holding AS (
    INSERT INTO held_subscription AS s (subscription_id)
    SELECT DISTINCT subscription_id FROM placed
    WHERE state = 'held' AND held_for <> 'order' AND NOT EXISTS (
      SELECT FROM held_subscription h
      WHERE h.subscription_id = placed.subscription_id AND h.held_at > now() - interval '${refreshSeconds} s'
    )
    ORDER BY subscription_id
    ON CONFLICT (subscription_id) DO UPDATE SET held_at = now()
  )
  SELECT ${found},
    ARRAY(SELECT id FROM repeated)::text[] AS repeated,
    ARRAY(SELECT id FROM duplicate)::text[] AS duplicates,
    ARRAY(SELECT id FROM accepted WHERE expires_at <= now())::text[] AS expired,
    ARRAY(SELECT id FROM accepted WHERE not_before > now())::text[] AS scheduled
  FROM current`,
);

/**
 * Commits notifications with their deliveries, each only if its keys are free, and says what became of each.
 * @throws {DeadlinePassed} then nothing was written
 * @throws what Postgres says, a missing partition among it (see PartitionKeeper); then nothing was written, unless the
 * connection was lost
 */
export async function accept(
  postgres: Postgres,
  version: number,
  batch: readonly Accepted[],
  handOut: HandOut,
  deadline = noDeadline,
): Promise<Acceptance> {
  if (batch.every(isPlain)) return acceptWithoutTerms(postgres, version, batch, handOut, deadline);
  const query: Query = (text, values) => postgres.query(text, values);
  // One with two keys may reserve its request although it is a duplicate: no other process may see that key before it is redirected.
  const hasTwoKeys = batch.some(({ request, content }) => request && content);
  const acceptance = await (hasTwoKeys
    ? postgres.transaction(async (inside) => {
        const acceptance = await acceptOnTerms(inside, version, batch, handOut, deadline, decideRefused);
        if (deadline.hasPassed()) throw new DeadlinePassed(); // the COMMIT must be under way before it, as well
        return acceptance;
      })
    : acceptOnTerms(query, version, batch, handOut, deadline, decideOrLeave));
  expiredCounted.inc(countExpired(batch, acceptance.verdicts));
  return acceptance;
}

const isPlain = ({ request, content, notBefore, expiresAt, heldFor }: Accepted): boolean =>
  !request && !content && notBefore === null && expiresAt === null && heldFor.size === 0;

async function acceptWithoutTerms(
  postgres: Postgres,
  version: number,
  batch: readonly Accepted[],
  handOut: HandOut,
  deadline: Deadline,
): Promise<Acceptance> {
  const [row] = await postgres.query<Found>(insertPlain, {
    version,
    begin_by_ms: deadline.at,
    ...notifications.bind(batch),
    ...bindDeliveries(batch),
    ...bindHandOut(handOut),
  });
  const answer = readFound(row!);
  if (answer.version !== version) return { ...answer, verdicts: [] };
  const verdict: Verdict = { kind: 'accepted', handedTo: handOut.state === 'queued' ? 'queue' : 'dispatcher' };
  return { ...answer, verdicts: batch.map(() => verdict) };
}

async function acceptOnTerms(
  query: Query,
  version: number,
  batch: readonly Accepted[],
  handOut: HandOut,
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
    ...bindHandOut(handOut),
  });
  const answer = readFound(row!);
  if (answer.version !== version) return { ...answer, verdicts: [] };
  const [repeated, duplicates] = [pick(batch, row!.repeated), pick(batch, row!.duplicates)];
  const isAllAccepted = repeated.length + duplicates.length === 0;
  const refused = isAllAccepted ? undefined : await decide(query, repeated, duplicates);
  const [expired, scheduled] = [new Set(row!.expired), new Set(row!.scheduled)];
  const verdicts = batch.map(({ id }): Verdict => {
    if (expired.has(id)) return { kind: 'accepted', handedTo: 'nobody' };
    const goesToQueue = handOut.state === 'queued' && !scheduled.has(id);
    return refused?.get(id) ?? { kind: 'accepted', handedTo: goesToQueue ? 'queue' : 'dispatcher' };
  });
  return { ...answer, verdicts };
}

/**
 * Outside a transaction, what was accepted is committed before this: its publishers must hear so, whatever keeps the ledger
 * from saying why the others were refused. Those are undecided: to accept them again tells, or fails for them alone.
 */
const decideOrLeave: typeof decideRefused = async (query, repeated, duplicates) => {
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

function bindDeliveries(batch: readonly Accepted[]): Values {
  const wanted: Numbered<string>[] = [];
  batch.forEach(({ subscriptionIds }, index) => {
    for (const value of subscriptionIds) wanted.push({ nr: index + 1, value });
  });
  return deliveries.bind(wanted);
}

function planned(batch: readonly Accepted[]): Numbered<PlannedDelivery>[] {
  return batch.flatMap(({ subscriptionIds, heldFor }, index) =>
    subscriptionIds.map((subscriptionId) => ({
      nr: index + 1,
      value: { subscriptionId, heldFor: heldFor.get(subscriptionId) },
    })),
  );
}

const bindHandOut = (handOut: HandOut): Values =>
  handOut.state === 'queued'
    ? { state: 'queued', delay_ms: null, process: handOut.process }
    : { state: 'waiting', delay_ms: handOut.delayMs, process: null };

function countExpired(batch: readonly Accepted[], verdicts: readonly Verdict[]): number {
  let count = 0;
  verdicts.forEach((verdict, nr) => {
    if (verdict.kind === 'accepted' && verdict.handedTo === 'nobody') count += batch[nr]!.subscriptionIds.length;
  });
  return count;
}

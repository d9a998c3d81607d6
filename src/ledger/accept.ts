import type { Postgres, Query } from '../infra/postgres/postgres.js';
import { rowsOf, statement } from '../infra/postgres/statement.js';
import { acceptOnTerms, decideOrUndecided } from './accept-on-terms.js';
import {
  acceptedColumns,
  bindDestination,
  type Acceptance,
  type Accepted,
  type Destination,
  isForQueue,
  type Decision,
} from './acceptance.js';
import { decideRefused } from './decide-refused.js';
import type { HeldReason } from './delivery.js';
import { holding } from './held-subscriptions.js';
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
import type { Numbered } from './numbered.js';

const notifications = rowsOf<Accepted>('notification', acceptedColumns);
const deliveries = rowsOf<Numbered<string>>('delivery', {
  nr: ['int', (item) => item.nr],
  subscription_id: ['uuid', (item) => item.value],
});

interface HeldDelivery {
  subscriptionId: string;
  reason: HeldReason;
}
const heldDeliveries = rowsOf<Numbered<HeldDelivery>>('held', {
  nr: ['int', (item) => item.nr],
  subscription_id: ['uuid', (item) => item.value.subscriptionId],
  held_for: ['text', (item) => item.value.reason],
});

/** Common table expressions, after `current`: notifications, and those of their deliveries that may be sent. */
const plain = `
  notifications AS (
    INSERT INTO notification (id, channel, publisher, body, trace_parent)
    SELECT id, channel, publisher, body, trace_parent FROM ${notifications.from} WHERE ${mayWrite}
  ),
  deliveries AS (
    INSERT INTO delivery (notification_id, subscription_id, state, next_at, queued_at, process)
    SELECT (${notifications.array('id')})[nr], subscription_id, $state::delivery_state,
      now() + coalesce($delay_ms::float8, $lease_ms::float8) * interval '1 ms',
      CASE WHEN $state::text = 'queued' AND ${isForQueue} THEN now() END, $process
    FROM ${deliveries.from} WHERE ${mayWrite}
  )`;

/**
 * Commits notifications and their deliveries, or nothing: only while the catalogue is at the version they were matched
 * with. The statement's snapshot decides, so a subscription committed before it began is never missed
 * (docs/decisions/0004). All times are Postgres' own, so that a process whose clock is off neither hurries nor delays
 * anything.
 */
const insertPlain = statement('accept', `WITH ${current}, ${plain} SELECT ${found} FROM current`);

/**
 * The same where some deliveries may not be sent now. `accept-on-terms` takes nearly twice as long for a batch, and
 * where much is published for an endpoint that is parked, nearly each batch has such a delivery.
 */
const insertSomeHeld = statement(
  'accept-some-held',
  `
  WITH ${current}, ${plain},
  held_deliveries AS (
    INSERT INTO delivery (notification_id, subscription_id, state, held_for, held_since)
    SELECT (${notifications.array('id')})[nr], subscription_id, 'held', held_for::held_reason, now()
    FROM ${heldDeliveries.from} WHERE ${mayWrite}
  ),
  ${holding(`(SELECT subscription_id FROM ${heldDeliveries.from} WHERE ${mayWrite})`)}
  SELECT ${found} FROM current`,
);

/**
 * Commits notifications with their deliveries, each only if its keys are free, and says what became of each.
 * @throws {DeadlinePassed} then nothing was written
 * @throws errors of Postgres, that of a missing partition among them (see PartitionKeeper); then nothing was written,
 *   unless the connection was lost
 */
export async function accept(
  postgres: Postgres,
  version: number,
  batch: readonly Accepted[],
  destination: Destination,
  deadline = noDeadline,
): Promise<Acceptance> {
  if (batch.every(hasNoTerms)) return acceptWithoutTerms(postgres, version, batch, destination, deadline);
  const query: Query = (text, values) => postgres.query(text, values);
  // One with two keys may reserve its request although it is a duplicate: no other process may see that key before it
  // is redirected.
  const hasTwoKeys = batch.some(({ request, content }) => request && content);
  const acceptance = await (hasTwoKeys
    ? postgres.transaction(async (inside) => {
        const acceptance = await acceptOnTerms(inside, version, batch, destination, deadline, decideRefused);
        if (deadline.hasPassed()) throw new DeadlinePassed(); // the COMMIT must be under way before it, as well
        return acceptance;
      })
    : acceptOnTerms(query, version, batch, destination, deadline, decideOrUndecided));
  expiredCounted.inc(countExpired(batch, acceptance.decisions));
  return acceptance;
}

const hasNoTerms = ({ request, content, notBefore, expiresAt, inOrder }: Accepted): boolean =>
  !request && !content && notBefore === null && expiresAt === null && !inOrder;

async function acceptWithoutTerms(
  postgres: Postgres,
  version: number,
  batch: readonly Accepted[],
  destination: Destination,
  deadline: Deadline,
): Promise<Acceptance> {
  const { toSend, toHold } = deliveriesOf(batch);
  const values = {
    version,
    begin_by_ms: deadline.at,
    ...notifications.bind(batch),
    ...deliveries.bind(toSend),
    ...bindDestination(destination),
  };
  const [row] = await (toHold.length === 0
    ? postgres.query<Found>(insertPlain, values)
    : postgres.query<Found>(insertSomeHeld, { ...values, ...heldDeliveries.bind(toHold) }));
  const answer = readFound(row!);
  if (answer.version !== version) return { ...answer, decisions: [] };
  const decision: Decision = { kind: 'accepted', handedTo: destination.state === 'waiting' ? 'dispatcher' : 'worker' };
  return { ...answer, decisions: batch.map(() => decision) };
}

function deliveriesOf(batch: readonly Accepted[]): { toSend: Numbered<string>[]; toHold: Numbered<HeldDelivery>[] } {
  const [toSend, toHold]: [Numbered<string>[], Numbered<HeldDelivery>[]] = [[], []];
  batch.forEach(({ subscriptionIds, heldFor }, index) => {
    const nr = index + 1;
    for (const subscriptionId of subscriptionIds) {
      const reason = heldFor.get(subscriptionId);
      if (reason === undefined) toSend.push({ nr, value: subscriptionId });
      else toHold.push({ nr, value: { subscriptionId, reason } });
    }
  });
  return { toSend, toHold };
}

function countExpired(batch: readonly Accepted[], decisions: readonly Decision[]): number {
  let count = 0;
  decisions.forEach((decision, nr) => {
    if (decision.kind === 'accepted' && decision.handedTo === 'nobody') count += batch[nr]!.subscriptionIds.length;
  });
  return count;
}

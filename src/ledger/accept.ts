import type { Postgres, Query } from '../infra/postgres/postgres.js';
import { rowsOf, statement, type Values } from '../infra/postgres/statement.js';
import { acceptOnTerms, decideOrLeave } from './accept-on-terms.js';
import {
  acceptedColumns,
  bindDestination,
  type Acceptance,
  type Accepted,
  type Destination,
  isForQueue,
  type Verdict,
} from './acceptance.js';
import { decideRefused } from './decide-refused.js';
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
    INSERT INTO notification (id, channel, publisher, body, trace_parent)
    SELECT id, channel, publisher, body, trace_parent FROM ${notifications.from} WHERE ${mayWrite}
  ),
  deliveries AS (
    INSERT INTO delivery (notification_id, subscription_id, state, next_at, queued_at, process)
    SELECT (${notifications.array('id')})[nr], subscription_id, $state::delivery_state,
      now() + coalesce($delay_ms::float8, $lease_ms::float8) * interval '1 ms',
      CASE WHEN $state::text = 'queued' AND ${isForQueue} THEN now() END, $process
    FROM ${deliveries.from} WHERE ${mayWrite}
  )
  SELECT ${found} FROM current`,
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
  destination: Destination,
  deadline = noDeadline,
): Promise<Acceptance> {
  if (batch.every(isPlain)) return acceptWithoutTerms(postgres, version, batch, destination, deadline);
  const query: Query = (text, values) => postgres.query(text, values);
  // One with two keys may reserve its request although it is a duplicate: no other process may see that key before it is redirected.
  const hasTwoKeys = batch.some(({ request, content }) => request && content);
  const acceptance = await (hasTwoKeys
    ? postgres.transaction(async (inside) => {
        const acceptance = await acceptOnTerms(inside, version, batch, destination, deadline, decideRefused);
        if (deadline.hasPassed()) throw new DeadlinePassed(); // the COMMIT must be under way before it, as well
        return acceptance;
      })
    : acceptOnTerms(query, version, batch, destination, deadline, decideOrLeave));
  expiredCounted.inc(countExpired(batch, acceptance.verdicts));
  return acceptance;
}

const isPlain = ({ request, content, notBefore, expiresAt, heldFor, inOrder }: Accepted): boolean =>
  !request && !content && notBefore === null && expiresAt === null && heldFor.size === 0 && !inOrder;

async function acceptWithoutTerms(
  postgres: Postgres,
  version: number,
  batch: readonly Accepted[],
  destination: Destination,
  deadline: Deadline,
): Promise<Acceptance> {
  const [row] = await postgres.query<Found>(insertPlain, {
    version,
    begin_by_ms: deadline.at,
    ...notifications.bind(batch),
    ...bindDeliveries(batch),
    ...bindDestination(destination),
  });
  const answer = readFound(row!);
  if (answer.version !== version) return { ...answer, verdicts: [] };
  const verdict: Verdict = { kind: 'accepted', handedTo: destination.state === 'waiting' ? 'dispatcher' : 'worker' };
  return { ...answer, verdicts: batch.map(() => verdict) };
}

function bindDeliveries(batch: readonly Accepted[]): Values {
  const wanted: Numbered<string>[] = [];
  batch.forEach(({ subscriptionIds }, index) => {
    for (const value of subscriptionIds) wanted.push({ nr: index + 1, value });
  });
  return deliveries.bind(wanted);
}

function countExpired(batch: readonly Accepted[], verdicts: readonly Verdict[]): number {
  let count = 0;
  verdicts.forEach((verdict, nr) => {
    if (verdict.kind === 'accepted' && verdict.handedTo === 'nobody') count += batch[nr]!.subscriptionIds.length;
  });
  return count;
}

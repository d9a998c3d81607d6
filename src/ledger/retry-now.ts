import type { Postgres } from '../infra/postgres/postgres.js';
import { changeState, type AlsoThen, type ChangeOptions } from './change-state.js';
import type { DeliveryKey, DeliveryState } from './delivery.js';
import { mayHaveTurn } from './line-up.js';
import { perDay } from './per-day.js';
import { stateOf } from './state-of.js';
import { renewTextVersions } from './text-versions.js';

// A delivery that an operator retries is sent also when it has become too old: the operator wants it, and the time that
// it was held before does not count any more (hold.service.ts). Nor does what it was held for: with it, it would count
// as released, and go beside the rate of its subscription. One that is in line behind another one about the same
// object stays there, and one that has ended lines up anew: whether it still has the turn, only the table of turns
// knows. It may end again before it lines up, so it is marked: cancelled, or by the late answer to an earlier call.
export const retryOne = perDay(
  'retry-now',
  (of) => `
    UPDATE ${of('delivery')} d SET
      state = 'waiting', held_for = NULL, held_since = NULL, next_at = now(), process = NULL,
      generation = d.generation + 1, ended_at = NULL,
      expires_at = CASE WHEN d.expires_at > now() THEN d.expires_at END,
      replays = d.replays + CASE WHEN d.state IN ('waiting', 'held') THEN 0 ELSE 1 END,
      failures = CASE WHEN d.state IN ('waiting', 'held') THEN d.failures ELSE 0 END,
      turn_nr = CASE WHEN d.turn_nr <= 0 THEN
        CASE WHEN d.state IN ('waiting', 'held') THEN d.turn_nr ELSE ${mayHaveTurn} END END
    WHERE d.notification_id = $notification AND d.subscription_id = $subscription
      AND d.state IN ('waiting', 'held', 'failed', 'expired', 'cancelled', 'unknown')
      AND NOT (d.state = 'held' AND d.held_for = 'order')
      AND NOT EXISTS (SELECT FROM ${of('notification')} WHERE id = $notification AND body IS NULL)
    RETURNING d.state, d.generation`,
);

/** Ended, without success: nothing but an erased body keeps one of these from being sent again. */
const mayBeRetried: ReadonlySet<DeliveryState> = new Set(['failed', 'expired', 'cancelled', 'unknown']);

/**
 * A delivery that waits is due now; one that ended without success starts a new series of attempts, with a new seal.
 */
export async function retryNow(
  postgres: Postgres,
  key: DeliveryKey,
  also?: AlsoThen,
): Promise<'retried' | 'not-found' | 'delivered' | 'erased' | 'in-line'> {
  const first: ChangeOptions['first'] = (query, day) => renewTextVersions(query, day, [key.notificationId]);
  if (await changeState(postgres, key, retryOne, { also, first })) return 'retried';
  const found = await stateOf(postgres, key);
  if (found === undefined) return 'not-found';
  if (found.state === 'delivered') return 'delivered';
  if (found.heldFor === 'order') return 'in-line';
  // Queued or being sent: what was asked for is about to happen.
  return mayBeRetried.has(found.state) ? 'erased' : 'retried';
}

import { statement } from '../../src/infra/postgres/statement.js';
import type { DeliveryState, HeldReason } from '../../src/ledger/delivery.js';

/** A delivery, as the ledger has it. */
export interface DeliveryRow {
  key: string;
  notificationId: string;
  subscriptionId: string;
  /** Number of its publication. */
  publication: number;
  state: DeliveryState;
  generation: number;
  attempts: number;
  replays: number;
  /** Operator's work on a selection that changed it last. */
  replayId: string | null;
  heldFor: HeldReason | null;
  /** It has a time at which it is looked at again, is in the queue, or somebody releases it. */
  isLookedAfter: boolean;
  /** A process has it in hand, or in its memory as its queue. */
  isInHand: boolean;
  /** Of its subscription's order: it may go, and no other about the same object. */
  hasTurn: boolean;
  hasEnded: boolean;
  expiresMs: number | null;
}

export const readDeliveries = statement(
  'read-deliveries',
  `
    SELECT notification_id || ' ' || subscription_id AS "key",
      notification_id AS "notificationId", subscription_id AS "subscriptionId",
      (SELECT (body::json->>'nr')::int FROM notification WHERE id = notification_id) AS publication,
      state, generation, attempts, replays, replay_id AS "replayId",
      CASE WHEN state = 'held' THEN held_for END AS "heldFor",
      next_at IS NOT NULL OR state = 'queued' AND queued_at IS NOT NULL
        OR state = 'held' AND CASE WHEN held_for = 'order' THEN turn_nr > 0
          ELSE EXISTS (SELECT FROM held_subscription h WHERE h.subscription_id = delivery.subscription_id) END
        AS "isLookedAfter",
      object_key IS NOT NULL AND turn_nr = 0 AND ended_at IS NULL AS "hasTurn",
      process IS NOT NULL AS "isInHand", ended_at IS NOT NULL AS "hasEnded",
      (extract(epoch FROM expires_at) * 1000)::float8 AS "expiresMs"
    FROM delivery ORDER BY 1`,
);

export const isOver = (state: DeliveryState): boolean => !['queued', 'waiting', 'held', 'sending'].includes(state);

export const subscriptionOf = (key: string): string => key.split(' ')[1]!;

export function show({ key, state, generation, attempts, replays, heldFor }: DeliveryRow): string {
  const how = heldFor === null ? state : `held for ${heldFor}`;
  return `${key.slice(14, 23)}…${key.slice(-4)} [${how}, generation ${generation}, ${attempts} attempts, ${replays} replays]`;
}

export function demand(holds: boolean, what: string): void {
  if (!holds) throw new Error(`It does not hold that ${what}`);
}

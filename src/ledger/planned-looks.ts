import type { Postgres } from '../infra/postgres/postgres.js';
import { rowsOf, statement, type Column } from '../infra/postgres/statement.js';
import type { LookClaim } from './held-subscriptions.js';

/** When a subscription is looked at next. */
export interface NextLook {
  subscriptionId: string;
  nextLookInMs: number;
}

/** A look that came to nothing. */
export type LookLeft = NextLook & Pick<LookClaim, 'claimedUntil'>;

const nextLookColumns = {
  subscription_id: ['uuid', (item) => item.subscriptionId],
  next_ms: ['float8', (item) => item.nextLookInMs],
} satisfies Record<string, Column<NextLook>>;
const nextLooks = rowsOf<NextLook>('item', nextLookColumns);
const looksLeft = rowsOf<LookLeft>('item', {
  ...nextLookColumns,
  claimed_until: ['timestamptz', (item) => item.claimedUntil],
});

// Locked in the order in which looks are ended, and for the same reason (src/ledger/held-subscriptions.ts).
export const postponeLooksItems = statement(
  'leave-looks',
  `WITH locked AS MATERIALIZED (
     SELECT subscription_id FROM held_subscription
     WHERE subscription_id = ANY (${looksLeft.array('subscription_id')}) ORDER BY subscription_id FOR UPDATE
   )
   UPDATE held_subscription s SET
     release_window = $release_window,
     look_at = CASE WHEN s.look_at = item.claimed_until THEN now() + item.next_ms * interval '1 ms' ELSE s.look_at END
   FROM ${looksLeft.from} JOIN locked USING (subscription_id)
   WHERE s.subscription_id = item.subscription_id`,
);

/** Looks that came to nothing, because the endpoints of all these are parked. @param window for when they are not */
export async function postponeLooks(postgres: Postgres, left: readonly LookLeft[], window: number): Promise<void> {
  await postgres.query(postponeLooksItems, { ...looksLeft.bind(left), release_window: window });
}

// In the same order. One that comes by then stays as it is.
export const bringLooksForwardItems = statement(
  'bring-looks-forward',
  `WITH locked AS MATERIALIZED (
     SELECT subscription_id FROM held_subscription
     WHERE subscription_id = ANY (${nextLooks.array('subscription_id')}) AND look_at > now()
     ORDER BY subscription_id FOR UPDATE
   )
   UPDATE held_subscription s SET look_at = now() + item.next_ms * interval '1 ms'
   FROM ${nextLooks.from} JOIN locked USING (subscription_id)
   WHERE s.subscription_id = item.subscription_id AND s.look_at > now() + item.next_ms * interval '1 ms'`,
);

/** Looks that one statement brings forward. */
const broughtTogether = 1000;

/** Looks that were planned for a probe that is due sooner now, or for an endpoint that is open no more. */
export async function bringLooksForward(postgres: Postgres, sooner: readonly NextLook[]): Promise<void> {
  for (let at = 0; at < sooner.length; at += broughtTogether)
    await postgres.query(bringLooksForwardItems, nextLooks.bind(sooner.slice(at, at + broughtTogether)));
}

/**
 * A probe may wait in the queue, and its call may take seconds: one that expires meanwhile finds nothing out. Of a
 * subscription to which many are sent, the oldest that has not expired has milliseconds left.
 */
const leftSeconds = 15;
/**
 * Held deliveries that are looked at from either end. A million may have expired together, and are freed a thousand
 * at a time (src/ledger/free-held.ts).
 */
const mostLookedAt = 32;

const held = (subscription: string, direction: 'ASC' | 'DESC'): string => `
  SELECT notification_id, expires_at FROM delivery
  WHERE subscription_id = ${subscription} AND state = 'held' AND held_for <> 'order'
  ORDER BY notification_id ${direction} LIMIT ${mostLookedAt}`;

/**
 * Of the deliveries that are held for a subscription: the notification of the one to be its endpoint's probe. The
 * oldest that will not have expired soon; where all of the oldest will, the newest that has not yet.
 */
export const fitProbe = (subscription: string): string => `
  coalesce(
    (SELECT notification_id FROM (${held(subscription, 'ASC')}) AS oldest
     WHERE coalesce(expires_at > now() + interval '${leftSeconds} s', true) ORDER BY notification_id LIMIT 1),
    (SELECT notification_id FROM (${held(subscription, 'DESC')}) AS newest
     WHERE coalesce(expires_at > now(), true) ORDER BY notification_id DESC LIMIT 1)
  )`;

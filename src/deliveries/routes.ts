import { deadStates, type DeliveryState } from '../ledger/delivery.js';
import type { Criteria } from './criteria.js';

/*
 * By which index deliveries are found. Those that somebody works on, and dead letters, have indexes by their state; an
 * index on every delivery would make accepting slower.
 */

interface StateIndex {
  /** On the rows that are in it. */
  condition: string;
  order: string;
}

const dead = (state: DeliveryState): StateIndex[] => [
  { condition: `state = '${state}'`, order: 'notification_id, subscription_id' },
];

const stateIndexes: Partial<Record<DeliveryState, StateIndex[]>> = {
  waiting: [{ condition: "state = 'waiting'", order: 'next_at' }],
  held: [
    { condition: "state = 'held' AND held_for <> 'order'", order: 'subscription_id, notification_id' },
    { condition: "state = 'held' AND held_for = 'order'", order: 'subscription_id, object_key, turn_nr' },
  ],
  queued: [{ condition: "state = 'queued'", order: 'queued_at' }],
  sending: [{ condition: "state = 'sending'", order: 'next_at' }],
  failed: dead('failed'),
  expired: dead('expired'),
  unknown: dead('unknown'),
};

const areDead: ReadonlySet<DeliveryState> = new Set(deadStates);

export const hasStateIndex = (state: DeliveryState | undefined): state is DeliveryState =>
  state !== undefined && stateIndexes[state] !== undefined;

/** The first rows of each index of the state. The order keeps the planner to that index. */
export function fromStateIndex(state: DeliveryState, columns: string, rows: number): string {
  const looks = stateIndexes[state]!.map(
    ({ condition, order }) => `(SELECT ${columns} FROM delivery WHERE ${condition} ORDER BY ${order} LIMIT ${rows})`,
  );
  return `(${looks.join(' UNION ALL ')})`;
}

/** The part of what is looked for that one index has in the order of a list; `{}` is the primary key. */
export function scopeOf({ notificationId, subscriptionId, state }: Criteria): Scope {
  if (notificationId !== undefined) return { notificationId, subscriptionId, state };
  if (state === undefined) return {};
  if (areDead.has(state)) return { state, subscriptionId };
  if ((state === 'waiting' || state === 'held') && subscriptionId !== undefined) return { state, subscriptionId };
  return {};
}

export type Scope = Pick<Criteria, 'notificationId' | 'subscriptionId' | 'state'>;

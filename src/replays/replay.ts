import type { Selection } from '../deliveries/selection.js';
import { deadStates, type DeliveryKey, type DeliveryState } from '../ledger/delivery.js';

/**
 * The treatment of the deliveries of a selection: they are sent again, cancelled, or, where they are dead letters,
 * closed.
 */
export const replayKinds = ['replay', 'cancel', 'close'] as const;
export type ReplayKind = (typeof replayKinds)[number];

export const replayStates = ['scheduled', 'running', 'paused', 'done', 'cancelled', 'stopped'] as const;
export type ReplayState = (typeof replayStates)[number];
/** It goes on, or may. */
export const openReplayStates = ['scheduled', 'running', 'paused'] as const satisfies readonly ReplayState[];

/** Why one ended before it had looked at everything, without an operator. */
export const stopReasons = ['stop-time', 'subscription-deleted', 'subscription-disabled'] as const;
export type StopReason = (typeof stopReasons)[number];

/** Why a delivery that it found was passed over. */
const skipReasons = ['subscriptionDeleted', 'subscriptionDisabled', 'bodyErased', 'changed'] as const;
export type SkipReason = (typeof skipReasons)[number];
export type Skipped = Partial<Record<SkipReason, number>>;

/** Which deliveries are meant, as the ledger is searched for them. */
export interface Meant {
  kind: ReplayKind;
  selection: Selection;
  states: readonly DeliveryState[];
}

/** Work of an operator on a selection of deliveries. */
export interface Replay extends Meant {
  id: string;
  onlyMissed: boolean;
  /** Null: as fast as the ledger takes it. */
  ratePerSecond: number | null;
  startAt: Date | null;
  stopAt: Date | null;
  note: string | null;
  state: ReplayState;
  stoppedBecause: StopReason | null;
  /** How many it was found to mean when it was made; not all were counted where that would have taken too long. */
  counted: number;
  isCountWhole: boolean;
  /** All up to this one have been looked at. */
  after: DeliveryKey;
  /** Lowest id of a notification that is no longer meant. */
  before: string;
  found: number;
  done: number;
  skipped: Skipped;
  createdAt: Date;
  /** Client id. */
  createdBy: string | null;
  startedAt: Date | null;
  endedAt: Date | null;
}

/** The states that may be named for each kind; the first ones are meant where none is. */
export const statesOf: Record<ReplayKind, { allowed: readonly DeliveryState[]; usual: readonly DeliveryState[] }> = {
  // It is not known whether one that is `unknown` arrived, and one that is `cancelled` is not wanted: neither is sent
  // unasked.
  replay: { allowed: [...deadStates, 'cancelled', 'delivered'], usual: ['failed', 'expired'] },
  cancel: {
    allowed: ['queued', 'waiting', 'held', 'sending'],
    usual: ['queued', 'waiting', 'held', 'sending'],
  },
  close: { allowed: deadStates, usual: deadStates },
};

/** @param onlyMissed notifications that have been delivered are not meant */
export function meantBy(kind: ReplayKind, selection: Selection, onlyMissed: boolean): Meant {
  const usual = statesOf[kind].usual;
  const { groups, states = groups ? [...new Set(groups.map(({ state }) => state))] : undefined } = selection;
  const meant = states ?? (kind === 'replay' && !onlyMissed ? [...usual, 'delivered' as const] : usual);
  return { kind, selection, states: meant };
}

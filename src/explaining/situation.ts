import type { DeliveryState, HeldReason } from '../ledger/delivery.js';
import { fetchedBySubscriber } from '../ledger/end-fetched.js';
import type { OpenEndpoint } from '../ledger/open-endpoints.js';
import { counted } from '../infra/counted.js';

/** A delivery as the ledger has it. */
export interface LedgerDelivery {
  state: DeliveryState;
  heldFor: HeldReason | null;
  heldSince: Date | null;
  nextAt: Date | null;
  queuedAt: Date | null;
  attempts: number;
  failures: number;
  replays: number;
  expiresAt: Date | null;
  lastStatus: number | null;
  lastError: string | null;
  endedAt: Date | null;
  /** The notification whose delivery has the turn of the same object, while this one is held for its order. */
  turnOf: string | null;
  /** Others in line before it, at most `mostCountedAhead`. */
  ahead: number;
}

export const mostCountedAhead = 1000;

export interface Around {
  /** That its subscription leads to; undefined: its circuit breaker is closed. */
  endpoint: OpenEndpoint | undefined;
  pausedAt: Date | null;
  /** The time that its publisher asked for. */
  notBefore: Date | null;
  now: number;
}

/** Where a delivery is, and why, in a sentence or two. */
export function describeSituation(delivery: LedgerDelivery, around: Around): string {
  const { state, attempts, lastError, endedAt } = delivery;
  const after = `after ${counted(attempts, 'call')}`;
  switch (state) {
    case 'queued':
      return delivery.queuedAt
        ? `It is in the queue since ${at(delivery.queuedAt)}.`
        : `A worker has it in hand; its lease ends at ${at(delivery.nextAt)}.`;
    case 'sending':
      return `Its one call is being made; if nothing is known of it by ${at(delivery.nextAt)}, its outcome is unknown.`;
    case 'waiting':
      return describeWaiting(delivery, around);
    case 'held':
      // One that lined up when it was due has no such time.
      return `It is held${delivery.heldSince ? ` since ${at(delivery.heldSince)}` : ''}: ${describeHeld(delivery, around)}.`;
    case 'delivered':
      return lastError === fetchedBySubscriber
        ? `It was fetched by its subscriber, which said so at ${at(endedAt)}, ${after}.`
        : `It was delivered at ${at(endedAt)}, ${after}.`;
    case 'failed':
      return `It failed at ${at(endedAt)}, ${after}${because(lastError)}. It is kept as a dead letter.`;
    case 'expired':
      return `It expired at ${at(endedAt)}, ${after}${because(lastError)}. It is kept as a dead letter.`;
    case 'unknown':
      return `It is not known whether it arrived${because(lastError)}. It is not sent again by itself.`;
    case 'cancelled':
      // A dead letter that was closed keeps the time of its end.
      return `It is cancelled; it ended at ${at(endedAt)}, ${after}${because(lastError)}.`;
  }
}

function describeWaiting({ nextAt, attempts, failures, lastError }: LedgerDelivery, around: Around): string {
  const due = `due at ${at(nextAt)}`;
  if (attempts === 0 && around.notBefore && around.notBefore.getTime() > around.now)
    return `It is scheduled: its publisher asked for ${at(around.notBefore)}.`;
  if (failures > 0) return `It waits for call ${attempts + 1}, ${due}${because(lastError)}.`;
  return `It waits to be handed to the queue, ${due}${because(lastError)}.`;
}

function describeHeld({ heldFor, turnOf, ahead }: LedgerDelivery, { endpoint, pausedAt }: Around): string {
  switch (heldFor) {
    case 'endpoint-parked':
      return endpoint
        ? `the circuit breaker of ${endpoint.address} is open since ${at(endpoint.openedAt)} (${endpoint.reason}); the next probe is due at ${at(endpoint.nextProbeAt)}`
        : 'the circuit breaker of its endpoint was open; it is closed again, and what was held goes out, oldest first';
    case 'endpoint-busy':
      return 'more came than its endpoint takes; what is held goes out as fast as it takes that, oldest first';
    case 'paused':
      return pausedAt
        ? `an operator paused its subscription at ${at(pausedAt)}`
        : 'its subscription was paused; it is resumed, and what was held goes out, oldest first';
    case 'rate':
      return 'its subscription has a rate, and what is held goes out at that rate, oldest first';
    case 'order':
      return `it is behind ${turnOf ?? 'an earlier notification'} about the same object, and ${countedAhead(ahead)} before it in line`;
    case null:
      return 'it is on its way';
  }
}

const countedAhead = (ahead: number): string =>
  ahead === 0 ? 'nothing else is' : `${ahead >= mostCountedAhead ? `${ahead} or more` : ahead} others are`;

const because = (reason: string | null): string => (reason === null ? '' : ` (${reason})`);
const at = (time: Date | null): string => time?.toISOString() ?? 'an unknown time';

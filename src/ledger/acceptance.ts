import { type Column, type Values } from '../infra/postgres/statement.js';
import type { Refusal } from './decide-refused.js';
import type { HeldReason } from './delivery.js';
import type { InOrder } from './line-up.js';
import type { OnceKey } from './once-key.js';

/** A notification as it is accepted, with the subscriptions that get it. */
export interface Accepted {
  id: string;
  channel: string;
  publisher: string;
  body: string;
  /** W3C trace context; null: it has none. */
  traceParent: string | null;
  subscriptionIds: string[];
  /** Of these, the ones whose deliveries may not be sent now, and why. */
  heldFor: ReadonlyMap<string, HeldReason>;
  /** Null: none of them keeps order. */
  inOrder: InOrder | null;
  /** The publisher's key: under it the request is carried out once. */
  request: OnceKey | null;
  /** The channel's key of this content: under it the content is published once. */
  content: OnceKey | null;
  /** Milliseconds since 1970; null: may be sent at once. */
  notBefore: number | null;
  /** Where it is not, and order is kept: it lines up now, not when it is due. */
  keepsPlace: boolean;
  /** Milliseconds since 1970, from when on it is not sent any more; null: always sent. */
  expiresAt: number | null;
}

/** Where deliveries go: to the queue, or, where it would refuse them, to the dispatcher after a delay. */
export type HandOut =
  /** `process`: id of the process whose memory is the queue; null with a broker. */
  { state: 'queued'; process: string | null } | { state: 'waiting'; delayMs: number };

/**
 * Accepted deliveries may also be in the hand of a worker from the start: that of the process which accepts them, or of
 * a sibling.
 */
export type Destination = HandOut | { state: 'in-hand'; process: string; leaseMs: number };

export type Decision =
  /**
   * Committed. `worker`: the caller brings its deliveries there, by the queue or not, as it said. `nobody`: it was too
   * old already, its deliveries are recorded as expired.
   */
  | {
      kind: 'accepted';
      handedTo: 'worker' | 'dispatcher' | 'nobody';
      /**
       * Subscriptions whose deliveries are handed to nobody yet: they are in line behind others about the same object.
       */
      inLine?: ReadonlySet<string>;
    }
  | Refusal;

export interface Acceptance {
  /** The catalogue version found. Nothing was written unless it is the one that was asked for. */
  version: number;
  /** Milliseconds since 1970 by the ledger's clock: when this was written. */
  queuedAt: number;
  /** One per notification, in order; empty when the version is another one. */
  decisions: Decision[];
}

/** Of a notification, for each accepting statement. */
export const acceptedColumns = {
  id: ['uuid', (item) => item.id],
  channel: ['text', (item) => item.channel],
  publisher: ['text', (item) => item.publisher],
  body: ['text', (item) => item.body],
  trace_parent: ['text', (item) => item.traceParent],
} satisfies Record<string, Column<Accepted>>;

export const bindHandOut = (handOut: HandOut): Values =>
  handOut.state === 'queued'
    ? { state: 'queued', delay_ms: null, process: handOut.process }
    : { state: 'waiting', delay_ms: handOut.delayMs, process: null };

export const bindDestination = (destination: Destination): Values =>
  destination.state === 'in-hand'
    ? { state: 'queued', delay_ms: null, process: destination.process, lease_ms: destination.leaseMs }
    : { ...bindHandOut(destination), lease_ms: null };

/**
 * Of a delivery that is being accepted: it is handed to the queue. Without a lease; what is in hand has one instead.
 */
export const isForQueue = '$lease_ms::float8 IS NULL';

/** One notification for one subscription: the key of everything the ledger knows about it. */
export interface DeliveryKey {
  notificationId: string;
  subscriptionId: string;
}

export const deliveryStates = [
  'queued',
  'waiting',
  'held',
  'sending',
  'delivered',
  'failed',
  'expired',
  'cancelled',
  'unknown',
] as const;
export type DeliveryState = (typeof deliveryStates)[number];

/** A delivery as the ledger hands it out. */
export interface Delivery extends DeliveryKey {
  /** Rises each time it is handed out; a result that carries an older one overwrites nothing but for a success. */
  generation: number;
  /** HTTP calls made so far. */
  attempts: number;
  /** Failed calls that count for the retry schedule. */
  failures: number;
  /** Times an operator had it sent again after its end. */
  replays: number;
  /** Milliseconds since 1970, by the ledger's clock, from when on it is not worth sending; null: always worth it. */
  expiresAt: number | null;
}

/** Text above this size, in bytes, does not travel through the queue: a worker reads it from the ledger. */
export const longestTravellingBody = 8192;

/** A delivery with the text to send; null where the text is too long to travel and is read when it is needed. */
export interface HandedOut extends Delivery {
  body: string | null;
}

/** One HTTP call, as it is kept for good. */
export interface Attempt {
  /** Counts from 1. */
  number: number;
  /** Milliseconds since 1970. */
  startedAt: number;
  durationMs: number;
  /** HTTP status, null when there was no answer. */
  status: number | null;
  /** Why there was no usable answer. */
  error: string | null;
}

/** What becomes of a delivery. `delayMs` counts from the moment the ledger writes it. */
export type Settlement = DeliveryKey & {
  generation: number;
  attempt: Attempt | null;
  /** Whether the right to send it was claimed before (at-most-once). Without it, a claimed delivery stays as it is. */
  isClaimed?: boolean;
} & (
    | { state: 'delivered' | 'failed' | 'expired' | 'cancelled' | 'unknown' }
    | { state: 'waiting' | 'held'; delayMs: number }
  );

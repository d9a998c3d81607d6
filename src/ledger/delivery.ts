import { rowsOf, type Column } from '../infra/postgres/statement.js';
import type { DeadState } from '../operational-events/operational-events.service.js';

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

/** Those of a dead letter. */
export const deadStates = ['failed', 'expired', 'unknown'] as const satisfies readonly (DeadState & DeliveryState)[];

/**
 * Of a row of `delivery`, or of its alias. The partial indexes of dead letters have this condition, and serve no other.
 */
export const isDead = (alias?: string): string =>
  `${alias === undefined ? '' : `${alias}.`}state IN (${deadStates.map((state) => `'${state}'`).join(', ')})`;

/**
 * Days after its end that a dead letter is kept with its body, so that an operator sees it, and may have it sent again:
 * a delivery that was scheduled or held for long may end when its day, or its body, is past retention.
 */
export const graceOfDeadLetters = (retentionDays: number): number => Math.min(7, retentionDays);

/** Why a delivery is held; each reason has one owner that releases it (docs/life-cycle.md). */
export const heldReasons = ['endpoint-busy', 'endpoint-parked', 'paused', 'rate', 'order'] as const;
export type HeldReason = (typeof heldReasons)[number];

/** A delivery as the ledger hands it out. */
export interface Delivery extends DeliveryKey {
  /** Rises each time it is handed out; a result that carries an older one overwrites nothing but for a success. */
  generation: number;
  /** HTTP calls made so far; those that our own stop ended do not count. */
  attempts: number;
  /** Failed calls that count for the retry schedule. */
  failures: number;
  /** Times an operator had it sent again after its end. */
  replays: number;
  /** Milliseconds since 1970, by the ledger's clock, from when on it is not worth sending; null: always worth it. */
  expiresAt: number | null;
  /**
   * It was held, and was given leave to go now: by its endpoint's window, as a probe, or by its subscription's rate.
   */
  isReleased: boolean;
  /** Of one that was released, in a worker: the catalogue had at least this version then. */
  releasedWith?: number | undefined;
  /**
   * It was released to find out whether an endpoint in trouble is well again: the probe of the endpoint was claimed for
   * it. Not kept in the ledger: one that is lost on its way is found as a released one, and another is claimed when the
   * claim has ended.
   */
  isProbe: boolean;
}

/** A text above this size, in bytes, is not in the queue's message: a worker reads it from the ledger. */
export const longestInlineBody = 8192;

/**
 * No worker has more deliveries in memory: those that it sends (10,000, the highest MAX_IN_FLIGHT), those from the
 * queue in line (8192, src/endpoints/rooms.ts), and those that were handed over to it (16,384,
 * src/queue/most-in-memory.ts). So no more of them can wait to be written.
 */
const mostInHand = 10_000 + 8192 + 16_384;

/**
 * Of what is written, or read, for deliveries in a worker's hand. A refusal loses nothing: the worker asks again, or a
 * rule of the dispatcher finds what was left.
 */
export const inHandBounds = { maxWaiting: { items: mostInHand }, turnWithinMs: 30_000 };

/** A delivery with the bytes to send; null where they are too many for a message and are read when they are needed. */
export interface HandedOut extends Delivery {
  /** Several deliveries of a notification share it. */
  body: Buffer | null;
  /** W3C trace context of its publication; nearly always there is none. */
  traceParent?: string | undefined;
}

/** A delivery's key as a statement answers it. */
export interface KeyRow {
  notification_id: string;
  subscription_id: string;
}

export const keyOf = (row: KeyRow): DeliveryKey => ({
  notificationId: row.notification_id,
  subscriptionId: row.subscription_id,
});

/** Of a delivery, for maps and sets. */
export const nameOf = ({ notificationId, subscriptionId }: DeliveryKey): string =>
  `${notificationId}/${subscriptionId}`;

export const notificationIdOf = (key: DeliveryKey): string => key.notificationId;

/** The primary key of a delivery, as the first columns of rows for a statement. */
export const keyColumns = {
  notification_id: ['uuid', (key) => key.notificationId],
  subscription_id: ['uuid', (key) => key.subscriptionId],
} satisfies Record<string, Column<DeliveryKey>>;

/** Deliveries that were handed out, as rows for a statement. */
export const handedOut = rowsOf<Delivery>('item', {
  ...keyColumns,
  generation: ['int', (delivery) => delivery.generation],
});

/** Deliveries of which nothing but the key is needed, as rows for a statement. */
export const namedDeliveries = rowsOf<DeliveryKey>('item', keyColumns);

/**
 * Of the rows `d` of `delivery`, the one with the key of a row of `other`, looked up by its primary key. Not a plain
 * equality of the first column: two tables could also be merged in the order of that column, and so the planner has a
 * second way, to read a partition's whole key. In a partition that was analyzed while it was empty both ways cost the
 * same, and the plan it then picks stays cached while the partition fills. That is tomorrow's partition, wherever an
 * operator has everything analyzed at night.
 */
export const sameDelivery = (other: string): string =>
  `d.notification_id = ANY (ARRAY[${other}.notification_id]) AND d.subscription_id = ${other}.subscription_id`;

/**
 * Of the rows `d` of `delivery`, those of `handedOut` that still are: not settled, and not handed out again since. Each
 * is looked up by its primary key: `state::text`, because the plain column would invite the planner, which knows little
 * of tables this young and whose choice stays cached, to walk through an index of all that is queued.
 */
export const stillHandedOut = `${sameDelivery('item')}
  AND d.state::text = 'queued' AND d.generation = item.generation`;

/** To be asked whether it has a delivery, in the generation it was handed out with. */
export const generationsIn = (rows: (KeyRow & { generation: number })[]): Set<string> =>
  new Set(rows.map((row) => generationOf({ ...keyOf(row), generation: row.generation })));

export const generationOf = ({
  notificationId,
  subscriptionId,
  generation,
}: DeliveryKey & { generation: number }): string => `${notificationId}/${subscriptionId}/${generation}`;

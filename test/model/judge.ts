import type { Postgres } from '../../src/infra/postgres/postgres.js';
import { statement } from '../../src/infra/postgres/statement.js';
import type { DeliveryState } from '../../src/ledger/delivery.js';
import type { DeliveryGuarantee } from '../../src/subscriptions/subscription.js';
import type { ModelReceiver } from './model-receiver.js';
import type { VirtualTime } from './virtual-time.js';

interface DeliveryRow {
  key: string;
  notificationId: string;
  subscriptionId: string;
  state: DeliveryState;
  generation: number;
  attempts: number;
  replays: number;
  /** It has a time at which it is looked at again, is in the queue, or somebody releases it. */
  isLookedAfter: boolean;
  /** A process has it in hand, or in its memory as its queue. */
  isInHand: boolean;
  /** Of its subscription's order: it may go, and no other about the same object. */
  hasTurn: boolean;
  hasEnded: boolean;
  expiresMs: number | null;
}

const readDeliveries = statement(
  'read-deliveries',
  `
    SELECT notification_id || ' ' || subscription_id AS "key",
      notification_id AS "notificationId", subscription_id AS "subscriptionId", state, generation, attempts, replays,
      next_at IS NOT NULL OR state = 'queued' AND queued_at IS NOT NULL
        OR state = 'held' AND CASE WHEN held_for = 'order' THEN turn_nr > 0
          ELSE EXISTS (SELECT FROM held_subscription h WHERE h.subscription_id = delivery.subscription_id) END
        AS "isLookedAfter",
      object_key IS NOT NULL AND turn_nr = 0 AND ended_at IS NULL AS "hasTurn",
      process IS NOT NULL AS "isInHand", ended_at IS NOT NULL AS "hasEnded",
      (extract(epoch FROM expires_at) * 1000)::float8 AS "expiresMs"
    FROM delivery ORDER BY 1`,
);

/** Few and quick retries, so that a run sees their end. */
export const retryPolicy = { maxRetries: 2, backoffFactor: 1, baseFactor: 1, maxDelaySeconds: 1, jitter: 0 };

const isOver = (state: DeliveryState): boolean => !['queued', 'waiting', 'held', 'sending'].includes(state);

/** Knows the promises, and compares them with the ledger and the calls that receivers got. */
export class Judge {
  readonly guarantees = new Map<string, DeliveryGuarantee>();
  readonly removed = new Set<string>();
  /** By an operator; those that answered 410 are known by the receiver. */
  readonly disabled = new Set<string>();
  private rows = new Map<string, DeliveryRow>();
  private readonly cancelled = new Set<string>();
  private retried: string | undefined;
  /** Failed calls there had been when an operator began a new series of attempts. */
  private readonly failuresBefore = new Map<string, number>();

  constructor(
    private readonly postgres: Postgres,
    private readonly receiver: ModelReceiver,
    private readonly time: VirtualTime,
    /** The events so far, for the message of a failure. */
    private readonly story: string[],
  ) {}

  /** A delivery for an operator to cancel or retry. */
  pick(pick: number): DeliveryRow | undefined {
    // In the order in which they came about: ids differ from run to run, and a run must be the same when it is repeated.
    const order = [...this.guarantees.keys()];
    const rows = [...this.rows.values()].toSorted(
      (one, other) =>
        (one.notificationId === other.notificationId ? 0 : one.notificationId < other.notificationId ? -1 : 1) ||
        order.indexOf(one.subscriptionId) - order.indexOf(other.subscriptionId),
    );
    return rows[pick % rows.length];
  }

  operated(key: string, verb: 'cancel' | 'retry'): void {
    if (verb === 'cancel') this.cancelled.add(key);
    else this.retried = key;
  }

  /** Nothing is left to be done. */
  isOver(): boolean {
    return [...this.rows.values()].every(({ state }) => isOver(state));
  }

  /** Checks the conditions that hold at all times, comparing with the state at the last look. */
  async look(): Promise<void> {
    const rows = await this.read();
    for (const row of rows) {
      const before = this.rows.get(row.key);
      if (before && JSON.stringify(before) !== JSON.stringify(row))
        this.story.push(`    ${show(before)} → ${show(row)}`);
      this.demandSense(row);
      if (before) this.demandProgress(before, row);
    }
    this.demandOrder(rows);
    for (const key of this.rows.keys())
      demand(
        rows.some((row) => row.key === key),
        `${key} is still in the ledger`,
      );
    this.rows = new Map(rows.map((row) => [row.key, row]));
    this.retried = undefined;
  }

  /** Checks the conditions that hold when nothing is left to be done. @param survivors processes that did not end before */
  conclude(survivors: ReadonlySet<number>): void {
    for (const row of this.rows.values()) {
      demand(isOver(row.state), `${show(row)} came to an end`);
      const isKnownSuccess = this.receiver.of(row.key).heardBy.some((process) => survivors.has(process));
      demand(!isKnownSuccess || row.state === 'delivered', `${show(row)} is delivered, as a process heard`);
      this.demandReason(row);
    }
  }

  private demandSense(row: DeliveryRow): void {
    const { arrived, calls, accepted } = this.receiver.of(row.key);
    const guarantee = this.guarantees.get(row.subscriptionId);
    demand(row.isLookedAfter === !isOver(row.state), `${show(row)} is looked at again exactly while it is not over`);
    demand(row.hasEnded === isOver(row.state), `${show(row)} has an end exactly when it is over`);
    demand(!row.isInHand || row.state === 'queued' || row.state === 'sending', `${show(row)} is in no process's hand`);
    demand(row.attempts <= calls, `${show(row)} counts no more attempts than there were calls (${calls})`);
    demand(row.state !== 'delivered' || accepted > 0, `${show(row)} was accepted by its receiver`);
    if (guarantee === 'at-most-once') {
      demand(
        arrived <= 1 + row.replays,
        `${show(row)} arrived at most once for each time an operator wanted it (${arrived})`,
      );
    } else {
      demand(row.state !== 'sending' && row.state !== 'unknown', `${show(row)} is in a state of its guarantee`);
    }
  }

  /** All notifications are about one object. */
  private demandOrder(rows: DeliveryRow[]): void {
    const withTurn = rows.filter(({ hasTurn }) => hasTurn).map(({ subscriptionId }) => subscriptionId);
    demand(new Set(withTurn).size === withTurn.length, 'one delivery about an object has the turn');
  }

  private demandProgress(before: DeliveryRow, row: DeliveryRow): void {
    const change = `${show(before)} → ${show(row)}`;
    const isRetried = this.retried === row.key && row.generation > before.generation;
    demand(row.generation >= before.generation, `the generation never falls: ${change}`);
    demand(row.attempts >= before.attempts, `attempts are never forgotten: ${change}`);
    if (row.replays > before.replays) this.failuresBefore.set(row.key, this.failuresOf(row));
    demand(row.replays === before.replays || isRetried, `only an operator has it sent again: ${change}`);
    if (isOver(before.state) && row.state !== before.state) {
      const isLateSuccess = row.state === 'delivered';
      demand(before.state !== 'delivered', `delivered is delivered: ${change}`);
      demand(isLateSuccess || isRetried, `what is over stays over: ${change}`);
    }
  }

  private demandReason(row: DeliveryRow): void {
    const { refused, gone } = this.receiver.of(row.key);
    const failures = this.failuresOf(row) - (this.failuresBefore.get(row.key) ?? 0);
    const isGone = this.disabled.has(row.subscriptionId) || this.isGone(row.subscriptionId);
    const isAtMostOnce = this.guarantees.get(row.subscriptionId) === 'at-most-once';
    switch (row.state) {
      case 'cancelled':
        return demand(
          this.cancelled.has(row.key) || this.removed.has(row.subscriptionId),
          `${show(row)} was cancelled by an operator or with its subscription`,
        );
      case 'failed': {
        const isExhausted = failures > retryPolicy.maxRetries || (isAtMostOnce && refused > 0 && failures > 0);
        return demand(isExhausted || gone > 0 || isGone, `${show(row)} had all its attempts`);
      }
      case 'expired': {
        const latest = this.time.now() + retryPolicy.maxDelaySeconds * 1000;
        return demand(row.expiresMs !== null && row.expiresMs <= latest, `${show(row)} was too old`);
      }
      default: // delivered, unknown: see demandSense
    }
  }

  private failuresOf({ key }: DeliveryRow): number {
    const { refused, unanswered } = this.receiver.of(key);
    return refused + unanswered;
  }

  private isGone(subscriptionId: string): boolean {
    return [...this.rows.values()].some(
      (row) => row.subscriptionId === subscriptionId && this.receiver.of(row.key).gone > 0,
    );
  }

  private read(): Promise<DeliveryRow[]> {
    return this.postgres.query<DeliveryRow>(readDeliveries);
  }
}

function show({ key, state, generation, attempts, replays }: DeliveryRow): string {
  return `${key.slice(14, 23)}…${key.slice(-4)} [${state}, generation ${generation}, ${attempts} attempts, ${replays} replays]`;
}

function demand(holds: boolean, what: string): void {
  if (!holds) throw new Error(`It does not hold that ${what}`);
}

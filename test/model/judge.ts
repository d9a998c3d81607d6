import type { Postgres } from '../../src/infra/postgres/postgres.js';
import { statement } from '../../src/infra/postgres/statement.js';
import type { DeliveryState, HeldReason } from '../../src/ledger/delivery.js';
import type { DeliveryGuarantee } from '../../src/subscriptions/subscription.js';
import { Calls, type Begun } from './calls.js';
import { ModelReceiver } from './model-receiver.js';
import { Publications } from './publications.js';
import { Restraint, type RestraintTally } from './restraint.js';
import type { VirtualTime } from '../support/virtual-time.js';

interface DeliveryRow {
  key: string;
  notificationId: string;
  subscriptionId: string;
  state: DeliveryState;
  generation: number;
  attempts: number;
  replays: number;
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

/** How often each of it happened in a world. */
export interface WorldTally extends RestraintTally {
  accepted: number;
  calledAtLeastOnce: number;
  calledAtMostOnce: number;
  deliveredAtLeastOnce: number;
  deliveredAtMostOnce: number;
  /** Seen to be held, for any reason but their turn. */
  held: number;
  /** … and because their subscription was paused. */
  paused: number;
}

const readDeliveries = statement(
  'read-deliveries',
  `
    SELECT notification_id || ' ' || subscription_id AS "key",
      notification_id AS "notificationId", subscription_id AS "subscriptionId", state, generation, attempts, replays,
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

/** Few and quick retries, so that a run sees their end. */
export const retryPolicy = { maxRetries: 2, backoffFactor: 1, baseFactor: 1, maxDelaySeconds: 1, jitter: 0 };

const isOver = (state: DeliveryState): boolean => !['queued', 'waiting', 'held', 'sending'].includes(state);

/** Knows the promises, and compares them with the ledger and the calls that receivers got. */
export class Judge {
  readonly guarantees = new Map<string, DeliveryGuarantee>();
  /** Those of the subscriptions that keep order. */
  readonly ordered = new Set<string>();
  readonly removed = new Set<string>();
  /** By an operator; those that answered 410 are known by the receiver. */
  readonly disabled = new Set<string>();
  private rows = new Map<string, DeliveryRow>();
  private readonly cancelled = new Set<string>();
  private retried: string | undefined;
  /** Failed calls there had been when an operator began a new series of attempts. */
  private readonly failuresBefore = new Map<string, number>();
  readonly publications: Publications;
  readonly calls: Calls;
  readonly restraint = new Restraint();
  private readonly seenHeld = { held: 0, paused: 0 };
  readonly receiver: ModelReceiver;

  constructor(
    private readonly postgres: Postgres,
    private readonly time: VirtualTime,
    /** The events so far, for the message of a failure. */
    private readonly story: string[],
  ) {
    this.publications = new Publications(time);
    this.calls = new Calls(
      time,
      (key) => this.guarantees.get(subscriptionOf(key))!,
      (key) => this.rows.get(key)?.replays ?? 0,
      (call) => this.restraint.objectionTo(call),
    );
    this.receiver = new ModelReceiver(this.calls);
  }

  /** A delivery for an operator to cancel or retry. */
  pick(pick: number): DeliveryRow | undefined {
    // In the order in which they came about: ids differ from run to run, and a run must be the same when it is
    // repeated.
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
      if (row.heldFor !== null && row.heldFor !== 'order') this.seenHeld.held++;
      if (row.heldFor === 'paused') this.seenHeld.paused++;
      this.demandSense(row);
      if (before) this.demandProgress(before, row);
      if (row.state === 'delivered') this.calls.settled(row.key);
    }
    this.demandOrder(rows);
    this.demandRows(rows);
    demand(this.calls.firstWrong === undefined, `${this.calls.firstWrong}`);
    for (const key of this.rows.keys())
      demand(
        rows.some((row) => row.key === key),
        `${key} is still in the ledger`,
      );
    this.rows = new Map(rows.map((row) => [row.key, row]));
    this.retried = undefined;
  }

  /**
   * Checks the conditions that hold when nothing is left to be done. @param survivors processes that did not end before
   */
  conclude(survivors: ReadonlySet<number>): void {
    const { wrong, unanswered } = this.publications;
    demand(wrong.length === 0, wrong.join('; '));
    demand(unanswered.length === 0, `the publishers of ${unanswered.join(', ')} have an answer`);
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
    for (const call of this.calls.takeFirst())
      if (this.ordered.has(subscriptionOf(call.key))) this.demandTurn(call, rows);
  }

  /**
   * A delivery is first called when it has the turn, and all are over that come before it. One that an operator has
   * sent again lines up anew, and a call that is about to be made is not taken back when its delivery is cancelled.
   */
  private demandTurn({ key, publication }: Begun, rows: DeliveryRow[]): void {
    const row = rows.find((each) => each.key === key);
    if (!row) throw new Error(`A delivery that the ledger does not know was called: ${key}`);
    if (row.replays > 0 || isOver(row.state)) return;
    demand(row.hasTurn, `${show(row)} has the turn when it is called`);
    for (const other of rows) {
      if (other.subscriptionId !== row.subscriptionId || other.replays > 0) continue;
      const isEarlier = this.publications.comesBefore(other.notificationId, publication);
      demand(!isEarlier || isOver(other.state), `${show(other)}, accepted before, is over when ${show(row)} is called`);
    }
  }

  /** All deliveries of a notification are committed together, one for each subscription that there is. */
  private demandRows(rows: DeliveryRow[]): void {
    const subscribers = new Map<string, Set<string>>();
    for (const { notificationId, subscriptionId } of rows) {
      const those = subscribers.get(notificationId) ?? new Set();
      subscribers.set(notificationId, those.add(subscriptionId));
    }
    const permanent = [...this.guarantees.keys()].filter(
      (id) => !this.removed.has(id) && !this.disabled.has(id) && !this.isGone(id),
    );
    for (const [notification, those] of subscribers)
      for (const id of permanent) demand(those.has(id), `notification ${notification} has a delivery for ${id}`);
    for (const { id, deliveries, removed } of this.publications.accepted) {
      const those = subscribers.get(id) ?? new Set();
      demand(those.size === deliveries, `${id} has as many deliveries as its publisher was told (${deliveries})`);
      for (const each of removed) demand(!those.has(each), `${id} has none for ${each}, which was removed before`);
      for (const each of permanent) demand(those.has(each), `${id} has one for ${each}`);
    }
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

  /** Counts of what came about: a run in which nothing does has shown nothing. */
  get tally(): WorldTally {
    const delivered = (guarantee: DeliveryGuarantee) =>
      [...this.rows.values()].filter(
        ({ state, subscriptionId }) => state === 'delivered' && this.guarantees.get(subscriptionId) === guarantee,
      ).length;
    return {
      accepted: this.publications.accepted.length,
      calledAtLeastOnce: this.calls.count['at-least-once'],
      calledAtMostOnce: this.calls.count['at-most-once'],
      deliveredAtLeastOnce: delivered('at-least-once'),
      deliveredAtMostOnce: delivered('at-most-once'),
      ...this.seenHeld,
      ...this.restraint.tally,
    };
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

const subscriptionOf = (key: string): string => key.split(' ')[1]!;

function show({ key, state, generation, attempts, replays }: DeliveryRow): string {
  return `${key.slice(14, 23)}…${key.slice(-4)} [${state}, generation ${generation}, ${attempts} attempts, ${replays} replays]`;
}

function demand(holds: boolean, what: string): void {
  if (!holds) throw new Error(`It does not hold that ${what}`);
}

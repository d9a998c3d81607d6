import type { Postgres } from '../../src/infra/postgres/postgres.js';
import type { DeliveryGuarantee } from '../../src/subscriptions/subscription.js';
import { Bulks, type AskedBulk, type BulkTally } from './bulks.js';
import { Calls } from './calls.js';
import { Claims } from './claims.js';
import { demand, isOver, readDeliveries, show, subscriptionOf, type DeliveryRow } from './delivery-rows.js';
import { Drops } from './drops.js';
import { ModelReceiver } from './model-receiver.js';
import { Order } from './order.js';
import { Publications } from './publications.js';
import { Restraint, type RestraintTally } from './restraint.js';
import type { VirtualTime } from '../support/virtual-time.js';

/** How often each of it happened in a world. */
export interface WorldTally extends RestraintTally, BulkTally {
  accepted: number;
  calledAtLeastOnce: number;
  calledAtMostOnce: number;
  deliveredAtLeastOnce: number;
  deliveredAtMostOnce: number;
  /** Seen to be held, for any reason but their turn. */
  held: number;
  /** … and because their subscription was paused. */
  paused: number;
  /** … because it has a rate. */
  atRate: number;
  /** Because an operator had a paused subscription drop what it held. */
  dropped: number;
  /** Times that an operator had a subscription with deliveries keep order, and no more. */
  orderBegun: number;
  orderEnded: number;
}

/** Few and quick retries, so that a run sees their end. */
export const retryPolicy = { maxRetries: 2, backoffFactor: 1, baseFactor: 1, maxDelaySeconds: 1, jitter: 0 };

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
  readonly publications: Publications;
  readonly calls: Calls;
  readonly claims = new Claims();
  readonly restraint = new Restraint();
  readonly order: Order;
  private readonly bulks = new Bulks();
  private readonly drops = new Drops();
  private readonly seenHeld = { held: 0, paused: 0, atRate: 0 };
  readonly receiver: ModelReceiver;

  constructor(
    private readonly postgres: Postgres,
    private readonly time: VirtualTime,
    /** The events so far, for the message of a failure. */
    private readonly story: string[],
  ) {
    this.publications = new Publications(time);
    this.order = new Order(this.publications);
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

  /** A paused subscription is to drop what it holds. */
  dropAsked(subscriptionId: string): void {
    this.drops.asked([...this.rows.values()].filter((row) => row.subscriptionId === subscriptionId));
  }

  /** Deliveries of a subscription are to be sent again, cancelled or closed. */
  bulkAsked(asked: AskedBulk): void {
    this.bulks.asked(asked, [...this.rows.values()], this.time.now());
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
      if (row.heldFor === 'rate') this.seenHeld.atRate++;
      this.demandSense(row);
      this.claims.demandHolder(row);
      if (before) this.demandProgress(before, row);
      if (row.state === 'delivered') this.calls.settled(row.key);
    }
    this.order.demand(rows, this.calls.takeFirst());
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
      const isSkipped = this.removed.has(row.subscriptionId) || this.isEnded(row.subscriptionId);
      this.bulks.conclude(row, isSkipped);
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

  /** All deliveries of a notification are committed together, one for each subscription that there is. */
  private demandRows(rows: DeliveryRow[]): void {
    const subscribers = new Map<string, Set<string>>();
    for (const { notificationId, subscriptionId } of rows) {
      const those = subscribers.get(notificationId) ?? new Set();
      subscribers.set(notificationId, those.add(subscriptionId));
    }
    const permanent = [...this.guarantees.keys()].filter((id) => !this.removed.has(id) && !this.isEnded(id));
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
    const bulk = this.bulks.changed(before, row);
    const isRetried = bulk === 'replay' || (this.retried === row.key && row.generation > before.generation);
    if (bulk === 'cancel' || bulk === 'close') this.cancelled.add(row.key);
    demand(row.generation >= before.generation, `the generation never falls: ${change}`);
    demand(row.attempts >= before.attempts, `attempts are never forgotten: ${change}`);
    if (row.replays > before.replays) this.failuresBefore.set(row.key, this.failuresOf(row));
    demand(row.replays === before.replays || isRetried, `only an operator has it sent again: ${change}`);
    if (isOver(before.state) && row.state !== before.state) {
      const isLateSuccess = row.state === 'delivered';
      demand(before.state !== 'delivered' || bulk === 'replay', `delivered is delivered: ${change}`);
      // It is wanted once more, and its outcome is that of the new call.
      if (before.state === 'delivered') this.receiver.of(row.key).heardBy = [];
      demand(isLateSuccess || isRetried || bulk === 'close', `what is over stays over: ${change}`);
    }
    const isTooOld = row.expiresMs !== null && row.expiresMs <= this.time.now();
    const hasEnded = this.removed.has(row.subscriptionId) || this.isEnded(row.subscriptionId);
    this.drops.changed(before, row, isRetried || isTooOld || hasEnded);
  }

  private demandReason(row: DeliveryRow): void {
    const { refused, gone } = this.receiver.of(row.key);
    const failures = this.failuresOf(row) - (this.failuresBefore.get(row.key) ?? 0);
    const isGone = this.isEnded(row.subscriptionId);
    const isAtMostOnce = this.guarantees.get(row.subscriptionId) === 'at-most-once';
    switch (row.state) {
      case 'cancelled':
        return demand(
          this.cancelled.has(row.key) || this.removed.has(row.subscriptionId) || this.drops.has(row.key),
          `${show(row)} was cancelled by an operator, dropped, or ended with its subscription`,
        );
      case 'failed': {
        const isExhausted = failures > retryPolicy.maxRetries || (isAtMostOnce && refused > 0 && failures > 0);
        return demand(isExhausted || gone > 0 || isGone, `${show(row)} had all its attempts`);
      }
      case 'expired': {
        const latest = this.time.now() + retryPolicy.maxDelaySeconds * 1000;
        return demand(row.expiresMs !== null && row.expiresMs <= latest, `${show(row)} was too old`);
      }
      case 'unknown':
        return demand(
          this.calls.mayHaveArrived(row.key) || this.claims.mayBeLost(row.key),
          `${show(row)} was called, or its process could not know that it was to be`,
        );
      default: // delivered: see demandSense
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
      dropped: this.drops.count,
      ...this.order.tally,
      ...this.bulks.tally,
      ...this.restraint.tally,
    };
  }

  private failuresOf({ key }: DeliveryRow): number {
    const { refused, unanswered } = this.receiver.of(key);
    return refused + unanswered;
  }

  /** It was disabled at some time, perhaps. */
  private isEnded(subscriptionId: string): boolean {
    return this.disabled.has(subscriptionId) || this.isGone(subscriptionId);
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

import type { Begun } from './calls.js';
import { demand, isOver, show, subscriptionOf, type DeliveryRow } from './delivery-rows.js';
import type { Publications } from './publications.js';

/**
 * Knows which subscriptions keep order, and since when: it counts for what is published from then on, and what was
 * before is not waited for. All notifications are about one object.
 */
export class Order {
  /** By subscription: the first publication that was made while it kept order. */
  private readonly keptFrom = new Map<string, number>();

  /** Switches of a subscription that had something published to it. */
  readonly tally = { orderBegun: 0, orderEnded: 0 };

  constructor(private readonly publications: Publications) {}

  /** It keeps order from now on. */
  kept(subscriptionId: string): void {
    if (this.keptFrom.has(subscriptionId)) return;
    this.keptFrom.set(subscriptionId, this.publications.count);
    if (this.publications.count > 0) this.tally.orderBegun++;
  }

  ended(subscriptionId: string): void {
    if (this.keptFrom.delete(subscriptionId) && this.publications.count > 0) this.tally.orderEnded++;
  }

  /** @param firstCalls the first ones of their deliveries since the last look */
  demand(rows: readonly DeliveryRow[], firstCalls: readonly Begun[]): void {
    const inOrder = rows.filter((row) => this.counts(row.subscriptionId, row.publication));
    const withTurn = inOrder.filter(({ hasTurn }) => hasTurn).map(({ subscriptionId }) => subscriptionId);
    demand(new Set(withTurn).size === withTurn.length, 'one delivery about an object has the turn');
    for (const call of firstCalls)
      if (this.counts(subscriptionOf(call.key), call.publication)) this.demandTurn(call, inOrder);
  }

  /**
   * A delivery is first called when it has the turn, and all are over that come before it. One that an operator has
   * sent again lines up anew, and a call that is about to be made is not taken back when its delivery is cancelled.
   */
  private demandTurn({ key, publication }: Begun, inOrder: readonly DeliveryRow[]): void {
    const row = inOrder.find((each) => each.key === key);
    if (!row) throw new Error(`A delivery that the ledger does not know was called: ${key}`);
    if (row.replays > 0 || isOver(row.state)) return;
    demand(row.hasTurn, `${show(row)} has the turn when it is called`);
    for (const other of inOrder) {
      if (other.subscriptionId !== row.subscriptionId || other.replays > 0) continue;
      const isEarlier = this.publications.comesBefore(other.notificationId, publication);
      demand(!isEarlier || isOver(other.state), `${show(other)}, accepted before, is over when ${show(row)} is called`);
    }
  }

  private counts(subscriptionId: string, publication: number): boolean {
    return publication >= (this.keptFrom.get(subscriptionId) ?? Infinity);
  }
}

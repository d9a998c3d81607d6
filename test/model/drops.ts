import { demand, show, type DeliveryRow } from './delivery-rows.js';

/**
 * Knows what an operator had a paused subscription drop: all that it held at that moment, and of these none that is
 * held anew since.
 */
export class Drops {
  private readonly toDrop = new Set<string>();
  private readonly dropped = new Set<string>();

  /** @param rows of the subscription, at the moment of the request */
  asked(rows: readonly DeliveryRow[]): void {
    for (const { key, state } of rows) if (state === 'held') this.toDrop.add(key);
  }

  /**
   * Between two looks a delivery has changed.
   * @param isExcused it may have ended in another way, or an operator wanted it sent meanwhile
   */
  changed(before: DeliveryRow, row: DeliveryRow, isExcused: boolean): void {
    if (!this.toDrop.has(row.key) || (row.state === 'held' && row.generation === before.generation)) return;
    this.toDrop.delete(row.key);
    if (row.state === 'cancelled') this.dropped.add(row.key);
    // A success of a call that was under way counts.
    else demand(isExcused || row.state === 'delivered', `${show(before)} is dropped, and not ${show(row)}`);
  }

  has(key: string): boolean {
    return this.dropped.has(key);
  }

  get count(): number {
    return this.dropped.size;
  }
}

import type { DeliveryState } from '../../src/ledger/delivery.js';
import { timeOfId } from '../../src/ledger/partitions.js';
import type { ReplayKind } from '../../src/replays/replay.js';
import { demand, show, subscriptionOf, type DeliveryRow } from './delivery-rows.js';

/** How often each of it happened in a world, by a selection. */
export interface BulkTally {
  sentAgain: number;
  cancelledTogether: number;
  closedTogether: number;
}

const tallied = { replay: 'sentAgain', cancel: 'cancelledTogether', close: 'closedTogether' } as const;

/** Work on the deliveries of a subscription that are in these states. */
export interface AskedBulk {
  id: string;
  kind: ReplayKind;
  states: readonly DeliveryState[];
  subscriptionId: string;
}

interface Ask extends AskedBulk {
  /** Those that were to be changed at that moment, by their keys. */
  meant: Map<string, DeliveryRow>;
}

/**
 * Knows what an operator had done with the deliveries of a subscription: each of them comes to it once, at most,
 * whichever processes carry it out, and whether or not they hear of it.
 */
export class Bulks {
  readonly tally: BulkTally = { sentAgain: 0, cancelledTogether: 0, closedTogether: 0 };
  private readonly asks = new Map<string, Ask>();
  private readonly done = new Set<string>();

  asked(asked: AskedBulk, rows: readonly DeliveryRow[], nowMs: number): void {
    const { subscriptionId, states } = asked;
    // One with an id of a later time, by a process whose clock is ahead, was accepted later as far as is known.
    const meant = rows.filter(
      (row) =>
        row.subscriptionId === subscriptionId && states.includes(row.state) && timeOfId(row.notificationId) <= nowMs,
    );
    this.asks.set(asked.id, { ...asked, meant: new Map(meant.map((row) => [row.key, row])) });
  }

  /** @returns how it was changed between two looks; undefined: not by this */
  changed(before: DeliveryRow, row: DeliveryRow): ReplayKind | undefined {
    const { key, replayId } = row;
    if (replayId === null || replayId === before.replayId) return undefined;
    const asked = this.asks.get(replayId);
    demand(asked?.subscriptionId === subscriptionOf(key), `${show(row)} is one of those that an operator meant`);
    demand(!this.done.has(`${replayId} ${key}`), `${show(row)} is changed once by what an operator began`);
    this.done.add(`${replayId} ${key}`);
    this.tally[tallied[asked!.kind]]++;
    return asked!.kind;
  }

  /**
   * Each of those that were meant was changed by it, or has changed before it came there.
   * @param hasEnded the subscription, perhaps: nothing is sent again for it
   */
  conclude(row: DeliveryRow, hasEnded: boolean): void {
    for (const [id, { kind, meant }] of this.asks) {
      const before = meant.get(row.key);
      if (!before || before.state !== row.state || before.generation !== row.generation) continue;
      const isDone = this.done.has(`${id} ${row.key}`) || (kind === 'replay' && hasEnded);
      demand(isDone, `${show(row)} is not left as it was by an operator's ${kind}`);
    }
  }
}

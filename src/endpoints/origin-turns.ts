import type { Places } from './places.js';
import type { Origin, Room } from './room.js';
import { OriginsWithoutShare } from './origins-without-share.js';

/**
 * The turns of origins for places that become free, of those with deliveries in line. One that lacks something waits
 * apart for that.
 */
export class OriginTurns {
  /** Those whose turn comes when a place is free, the next one first. */
  private readonly ready = new Set<Origin>();
  /** With room for a call of an unproven endpoint; and those with long calls that have room for one more. */
  private readonly unproven = new OriginsWithoutShare();
  private readonly long = new OriginsWithoutShare();
  /** With room for a call, that have as many places as are free. */
  private readonly crowded = new Set<Origin>();

  constructor(private readonly places: Places) {}

  /** Something has changed for it: its turn will tell. */
  mayBeReady(origin: Origin): void {
    if (origin.withLine.size === 0) return;
    this.leaveApart(origin);
    this.ready.add(origin); // one that has a turn keeps its place among them
  }

  /** While a place is free: the room that gets it. Its origin has no turn any more, until it may be ready again. */
  next(): Room | undefined {
    for (;;) {
      const origin =
        this.ready.values().next().value ??
        this.unproven.take(this.places.unproven) ??
        this.long.take(this.places.long);
      if (!origin) return undefined;
      this.ready.delete(origin);
      const room = this.nextOf(origin);
      if (room) return room;
      // It comes back when one of its calls ends, or a place is given back.
    }
  }

  placeGivenBack(): void {
    for (const origin of this.crowded) {
      if (!this.places.suffice(origin)) continue;
      this.crowded.delete(origin);
      this.ready.add(origin);
    }
  }

  /**
   * As many as now have their share take turns with the others.
   * @param before how many places the unproven had
   */
  unprovenFreed(before: number): void {
    this.freed(this.unproven, before, this.places.unproven);
  }

  /** The same of those with long calls. */
  longFreed(before: number): void {
    this.freed(this.long, before, this.places.long);
  }

  /** Nothing is in line for it. */
  forget(origin: Origin): void {
    this.ready.delete(origin);
    this.leaveApart(origin);
  }

  private leaveApart(origin: Origin): void {
    this.unproven.delete(origin);
    this.long.delete(origin);
    this.crowded.delete(origin);
  }

  private freed(lacking: OriginsWithoutShare, before: number, taken: number): void {
    for (let freed = before - taken; freed > 0; freed--) {
      const origin = lacking.take(before - freed);
      if (origin) this.ready.add(origin);
    }
  }

  /** The room of an origin whose turn it is; it then comes last. */
  private nextOf(origin: Origin): Room | undefined {
    let share = 0;
    if (!origin.window.hasRoom) return undefined;
    if (!this.places.suffice(origin)) {
      this.crowded.add(origin);
      return undefined;
    }
    if (!this.places.hasShareOfLong(origin)) {
      this.long.add(origin, this.places.shareOfLong(origin));
      return undefined;
    }
    for (const room of origin.withLine) {
      if (!room.window.hasRoom) continue;
      if (this.places.hasShare(room)) {
        origin.withLine.delete(room);
        origin.withLine.add(room);
        return room;
      }
      share = Math.max(share, this.places.shareOf(room));
    }
    if (share > 0) this.unproven.add(origin, share);
    return undefined;
  }
}

import { Place, type Origin, type Room } from './room.js';

/** A quarter of a worker's places is for all endpoints together that are not proven. */
const unprovenPart = 4;
/** The first call of an origin may have a place beyond that, until they have half of the places. */
const firstCallsPart = 2;

/** The places of a worker: how many are free, and which endpoint may take one. */
export class Places {
  free: number;
  /** Those of endpoints that are not proven. */
  unproven = 0;
  private readonly unprovenShare: number;
  private readonly firstCallsShare: number;

  constructor(private readonly total: number) {
    this.free = total;
    this.unprovenShare = Math.max(1, Math.floor(total / unprovenPart));
    this.firstCallsShare = Math.max(1, Math.floor(total / firstCallsPart));
  }

  get areAllFree(): boolean {
    return this.free === this.total;
  }

  take(room: Room, now: number): Place {
    this.free--;
    room.window.enter(now);
    room.origin.window.enter(now);
    if (!room.isProven) this.unproven++;
    return new Place(room);
  }

  /** The places of an endpoint that is no longer proven, or is again, count from now on as what they are. */
  judge(room: Room, now: number): void {
    const isProven = room.deservesProven(now);
    if (isProven === room.isProven) return;
    room.isProven = isProven;
    this.unproven += isProven ? -room.window.open : room.window.open;
  }

  /**
   * An origin may have as many places as it leaves free: one alone takes half, two a third each, and however many slow
   * ones there are, the next origin finds a place.
   */
  suffice(origin: Origin): boolean {
    return origin.window.open < this.free;
  }

  /** Whether its calls under way, and not what else takes places, are why the origin may have no more of them. */
  areTakenBy({ calling }: Origin): boolean {
    return calling > 0 && calling >= this.free;
  }

  /**
   * Where calls are overdue, half of the share is left to endpoints that are merely unknown. An origin without a call
   * has a larger share: else one that is well and seldom used would wait behind many that hang, and could not show that
   * it is well.
   */
  hasShare(room: Room): boolean {
    return room.isProven || this.unproven < this.shareOf(room);
  }

  /** How many places the unproven may have for this one, which is not proven, to get another. */
  shareOf(room: Room): number {
    if (room.origin.window.open === 0) return this.firstCallsShare;
    return room.overdue > 0 ? this.unprovenShare / 2 : this.unprovenShare;
  }
}

import { Place, type Origin, type Room } from './room.js';

/** A quarter of a worker's places is for all endpoints together that are not proven. */
const unprovenPart = 4;
/** The first call of an origin may have a place beyond that, until they have half of the places. */
const firstCallsPart = 2;
/**
 * An eighth is kept for origins whose calls are short, and half of that also for the first call of one that nothing is
 * known of.
 */
const keptPart = 8;

/** The places of a worker: how many are free, and which endpoint may take one. */
export class Places {
  free: number;
  /** Those of endpoints that are not proven. */
  unproven = 0;
  private readonly unprovenShare: number;
  private readonly firstCallsShare: number;
  private readonly kept: number;

  constructor(private readonly total: number) {
    this.free = total;
    this.unprovenShare = Math.max(1, Math.floor(total / unprovenPart));
    this.firstCallsShare = Math.max(1, Math.floor(total / firstCallsPart));
    this.kept = Math.floor(total / keptPart);
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
   * An origin may have as many places as it leaves free: one alone takes half, two a third each, and many a few. Those
   * few are not enough for one that is called often: slow ones give places back only when their calls end, and those of
   * them that had fewer take the last ones. So some are kept for origins that give them back soon.
   */
  suffice(origin: Origin): boolean {
    return origin.window.open < this.freeFor(origin);
  }

  /** Whether its calls under way, and not what else takes places, are why the origin may have no more of them. */
  areTakenBy(origin: Origin): boolean {
    return origin.calling > 0 && origin.calling >= this.freeFor(origin);
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

  private freeFor(origin: Origin): number {
    if (origin.hasShortCalls) return this.free;
    return this.free - (origin.isUnknown && origin.window.open === 0 ? this.kept / 2 : this.kept);
  }
}

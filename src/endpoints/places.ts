import { Place, type Origin, type Room } from './room.js';

/** A quarter of a worker's places is for all endpoints together that are not proven. */
const unprovenPart = 4;
/** The first call of an origin may have a place beyond that, until they have half of the places. */
const firstCallsPart = 2;
/**
 * Origins whose calls are not short have all but an eighth together, and the first call of one that nothing is known of
 * may have a place beyond that, until they have all but a sixteenth.
 */
const keptPart = 8;

/** The places of a worker: how many are free, and which endpoint may take one. */
export class Places {
  free: number;
  /** Those of endpoints that are not proven. */
  unproven = 0;
  /** Those of origins whose calls are not short. */
  long = 0;
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
    const { origin } = room;
    this.free--;
    origin.places++;
    room.window.enter(now);
    origin.window.enter(now);
    if (!room.isProven) this.unproven++;
    if (!origin.isShort) this.long++;
    return new Place(room);
  }

  giveBack({ room: { origin } }: Place): void {
    this.free++;
    origin.places--;
    if (!origin.isShort) this.long--;
  }

  /** The places of an endpoint that is no longer proven, or is again, count from now on as what they are. */
  judge(room: Room, now: number): void {
    const isProven = room.deservesProven(now);
    if (isProven === room.isProven) return;
    room.isProven = isProven;
    this.unproven += isProven ? -room.window.open : room.window.open;
  }

  /** Likewise of an origin whose calls are short by now, or no longer. */
  judgeOrigin(origin: Origin): void {
    const isShort = origin.hasShortCalls;
    if (isShort === origin.isShort) return;
    origin.isShort = isShort;
    this.long += isShort ? -origin.places : origin.places;
  }

  /** An origin may have as many places as it leaves free: one alone takes half, two a third each, and many a few. */
  suffice(origin: Origin): boolean {
    return origin.window.open < this.free;
  }

  /**
   * Slow origins keep their places until their calls end, and would take the last free ones from one that is called
   * often. So all origins with long calls have one share together, counted by the places that they have: counted by
   * free places, quick origins could shut them out.
   */
  hasShareOfLong(origin: Origin): boolean {
    return origin.isShort || this.long < this.shareOfLong(origin);
  }

  /** How many places those with long calls may have for this one, which is one of them, to get another. */
  shareOfLong(origin: Origin): number {
    return this.total - (origin.isUnknown && origin.window.open === 0 ? this.kept / 2 : this.kept);
  }

  /**
   * Whether calls under way, its own or those of all that have long ones, are why the origin may have no more places:
   * not what else takes them.
   */
  areTakenBy(origin: Origin): boolean {
    return origin.calling > 0 && (origin.calling >= this.free || !this.hasShareOfLong(origin));
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

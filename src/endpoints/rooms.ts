import { RunningTime } from '../infra/running-time.js';
import type { HeldReason } from '../ledger/delivery.js';
import { findHanging, type Hanging } from './hanging.js';
import { KnownRooms, leadsTo, type CalledSubscription } from './known-rooms.js';
import type { InTime } from './line.js';
import { OriginTurns } from './origin-turns.js';
import { Places } from './places.js';
import { shortestOverdueMs, type Origin, type Place, type Room, type Waiting } from './room.js';
import { none, type Verdict } from './verdict.js';

/** In line, for each call that may be open: a burst to a quick endpoint is through before anything is held. */
const inLinePerCall = 16;
/** In line for an endpoint of which nothing bad is known, at least: its window has yet to widen. */
const inLineOfHarmless = 1024;
/**
 * In all lines, from the queue; more than the chunks that a worker takes before it acknowledges the first of them.
 * Deliveries that were handed over are bounded before they come here (src/queue/most-in-memory.ts).
 */
const inAllLines = 8192;
/** After this time a delivery is held, unless the endpoint is about to get to it. */
const patienceMs = 250;
/** An endpoint will complete as many calls in a second as it did lately; what is this near in line waits on. */
const worthWaitingSeconds = 2;
/**
 * The same for what was handed over, where nothing bad is known of the endpoint: a burst to many of its URLs is through
 * sooner than it would be held and released. A delivery that came by the queue may not wait so long: its chunk would
 * keep its place in the lane, and those behind it would wait for a host that is well and slow (docs/decisions/0064).
 */
const worthWaitingSecondsOfHandedOver = 10;
/**
 * No other endpoint was asked for in this time: what waits keeps nobody waiting, and holding it would only cost. Not
 * where the queue waits as well.
 */
const aloneMs = 1000;

export interface RoomsOptions {
  /** Of the worker: its places. */
  places: number;
  /** Calls of one callback URL, at most. */
  perUrl: number;
  /** In line, at most; well below the lease of a delivery. */
  longestWaitMs: number;
  /** Milliseconds, monotonic. */
  now: () => number;
}

/**
 * Room before place (docs/decisions/0025): a delivery gets one of the worker's places only when its endpoint has room
 * for a call. One that finds none waits in memory, in the line of its endpoint. Origins take turns for places that
 * become free, and within an origin its URLs. An origin has no more places than it leaves free, endpoints that are not
 * proven have a quarter, all together, and origins whose calls are not short all but an eighth.
 */
export class Rooms {
  private readonly known: KnownRooms;
  private readonly withLine = new Set<Room>();
  /** Calls under way, the oldest first. */
  private readonly calls = new Set<Place>();
  private readonly idle: (() => void)[] = [];
  private readonly now: () => number;
  private readonly places: Places;
  private readonly turns: OriginTurns;
  private waiting = 0;
  private waitingFromQueue = 0;
  private isClosed = false;
  private keepsQueueWaiting = (): boolean => false;
  private lastAsked: Room | undefined;
  private lastAskedAt = -Infinity;
  /** When a delivery asked for another endpoint than the last one. */
  private otherAskedAt = -Infinity;

  constructor(private readonly options: RoomsOptions) {
    const time = new RunningTime(options.now);
    this.now = () => time.now();
    this.places = new Places(options.places);
    this.turns = new OriginTurns(this.places);
    this.known = new KnownRooms(options.perUrl, Math.max(options.perUrl, Math.ceil(options.places / 2)));
  }

  /** Deliveries in line. */
  get inLine(): number {
    return this.waiting;
  }

  /** @param keepsQueueWaiting whether what is in line may keep others from coming out of the queue */
  watchQueue(keepsQueueWaiting: () => boolean): void {
    this.keepsQueueWaiting = keepsQueueWaiting;
  }

  /** @returns why the delivery is held, where there is no room; a promise: it waits in line */
  enter(subscription: CalledSubscription, isHandedOver = false): Place | HeldReason | Promise<Place | HeldReason> {
    if (this.isClosed) return 'endpoint-busy';
    const now = this.now();
    const room = this.known.of(subscription, now);
    if (room !== this.lastAsked) this.otherAskedAt = this.lastAskedAt;
    this.lastAsked = room;
    this.lastAskedAt = now;
    this.places.judge(room, now);
    if (room.line.length === 0 && this.mayCall(room)) return this.places.take(room, now);
    if (!isHandedOver && this.waitingFromQueue >= inAllLines) return 'endpoint-busy';
    if (this.isLineFull(room, isHandedOver, now)) return 'endpoint-busy';
    return new Promise((resolve) => {
      room.line.push({ since: now, isHandedOver, resolve });
      this.waiting++;
      if (!isHandedOver) this.waitingFromQueue++;
      this.withLine.add(room);
      room.origin.withLine.add(room);
      this.turns.mayBeReady(room.origin);
      this.serve();
    });
  }

  /** Whether a place that has not been used yet is one of those that the subscription may have now. */
  isOf({ room }: Place, subscription: CalledSubscription): boolean {
    return this.known.isOf(room, subscription);
  }

  /** The call begins now. */
  begin(place: Place): void {
    const { room } = place;
    place.begunAt = this.now();
    this.calls.add(place);
    room.calling++;
    room.origin.calling++;
    room.silentSince ??= place.begunAt;
    room.origin.silentSince ??= place.begunAt;
  }

  /** The call has ended, or there will be none: its endpoint has room for another one. */
  leave(place: Place, verdict: Verdict, durationMs: number): void {
    if (!place.hasRoom) return;
    place.hasRoom = false;
    const { room } = place;
    const { origin } = room;
    const now = this.now();
    const { unproven, long } = this.places;
    room.window.leave(now);
    origin.window.leave(now);
    if (!room.isProven) this.places.unproven--;
    if (place.begunAt !== undefined) {
      this.calls.delete(place);
      room.calling--;
      origin.calling--;
      if (place.isOverdue) {
        room.overdue--;
        origin.overdue--;
      }
      origin.called(durationMs);
    }
    const isAnswered = verdict.kind === 'well' || verdict.kind === 'troubled';
    if (verdict.kind === 'well') room.wentWell(now, durationMs);
    else if (verdict.kind === 'troubled') room.wasAnsweredBadly(durationMs);
    else if (verdict.kind === 'unanswered') room.wasUnanswered(now, place.begunAt);
    else if (verdict.kind === 'untrusted') room.wentBadly();
    if (isAnswered) origin.window.widen();
    else if (verdict.kind === 'unanswered') origin.window.halve();
    noteSilence(room, isAnswered, now);
    noteSilence(origin, isAnswered, now);
    this.places.judge(room, now);
    this.places.judgeOrigin(origin);
    this.turns.unprovenFreed(unproven);
    this.turns.longFreed(long);
    this.turns.mayBeReady(origin);
    this.serve();
  }

  /** The delivery is settled. */
  giveBack(place: Place): void {
    if (place.isGivenBack) return;
    place.isGivenBack = true;
    const { long } = this.places;
    this.places.giveBack(place);
    this.turns.longFreed(long);
    this.leave(place, none, 0);
    this.turns.placeGivenBack();
    this.serve();
    if (this.places.areAllFree) for (const resolve of this.idle.splice(0)) resolve();
  }

  /** To be called twenty times a second. @returns the origins that have been found to hang */
  tick(): Hanging[] {
    const now = this.now();
    for (const place of this.calls) {
      const { room } = place;
      const ageMs = now - place.begunAt!;
      if (ageMs < shortestOverdueMs) break;
      if (place.isOverdue || ageMs < room.overdueMs) continue;
      place.isOverdue = true;
      room.overdue++;
      room.origin.overdue++;
      this.places.judge(room, now);
      this.places.judgeOrigin(room.origin);
    }
    const hanging = findHanging(this.withLine, now);
    for (const room of this.withLine) this.giveUp(room, now);
    this.known.sweep(now);
    return hanging;
  }

  /** Holds all that waits in the lines of an endpoint; without an address, in all. */
  turnAway(reason: HeldReason, address?: string): void {
    const withLine = address === undefined ? this.withLine : (this.known.originAt(address)?.withLine ?? []);
    for (const room of [...withLine]) {
      if (address === undefined || leadsTo(room, address)) this.answer(room, room.line.takeAll(), reason);
    }
  }

  /** The worker stops: holds all that waits in line, and all that asks from now on. */
  close(): void {
    this.isClosed = true;
    this.turnAway('endpoint-busy');
  }

  /**
   * It has recovered: its window is again as at first. That of the origin stays, where only a URL of it has recovered.
   */
  startSlowly(address: string): void {
    const origin = this.known.originAt(address);
    if (!origin) return;
    for (const room of origin.rooms) if (leadsTo(room, address)) room.window.startSlowly();
    if (origin.address === address) origin.window.startSlowly();
    this.turns.mayBeReady(origin);
    this.serve();
  }

  /**
   * A URL of that origin hangs alone: what was not answered there takes no room from the others. One call that hangs
   * would leave them none, where the window of the origin had been halved down to one.
   */
  keepRoomBeside(address: string): void {
    const origin = this.known.originAt(address);
    if (!origin) return;
    origin.window.widenToFirst();
    this.turns.mayBeReady(origin);
    this.serve();
  }

  /** Resolves when every place has been given back. */
  async drained(): Promise<void> {
    if (!this.places.areAllFree) await new Promise<void>((resolve) => this.idle.push(resolve));
  }

  private mayCall(room: Room): boolean {
    const { places } = this;
    return room.hasRoom && places.suffice(room.origin) && places.hasShareOfLong(room.origin) && places.hasShare(room);
  }

  private isLineFull(room: Room, isHandedOver: boolean, now: number): boolean {
    const length = room.line.lengthOf(isHandedOver);
    const few = room.window.limit * inLinePerCall;
    if (!this.isHarmless(room)) return length >= few;
    if (length < Math.max(inLineOfHarmless, few)) return false;
    return !this.isAlone(now) || length >= (room.pace(now) * this.options.longestWaitMs) / 1000;
  }

  /** Nothing bad is known of its endpoint. */
  private isHarmless(room: Room): boolean {
    return room.overdue === 0 && !room.isTroubled && this.places.hasShare(room);
  }

  private isAlone(now: number): boolean {
    return now - this.otherAskedAt > aloneMs;
  }

  /** Gives free places to those that wait, origin by origin. */
  private serve(): void {
    while (this.places.free > 0) {
      const room = this.turns.next();
      if (!room) return;
      const next = room.line.next()!;
      this.withdraw(room, [next]);
      next.resolve(this.places.take(room, this.now()));
      this.turns.mayBeReady(room.origin);
    }
  }

  /**
   * Those that have waited for too long, and that the endpoint will not get to soon. A full worker is not its fault.
   */
  private giveUp(room: Room, now: number): void {
    const { line } = room;
    this.answer(room, line.takeSince(now - this.options.longestWaitMs), 'endpoint-busy');
    if (!room.isBusy && !this.places.areTakenBy(room.origin) && this.places.hasShare(room)) return;
    this.answer(room, line.takeLateSince(now - patienceMs, this.inTime(room, now)), 'endpoint-busy');
  }

  /**
   * How many of its line are worth waiting for. An endpoint that is alone keeps nobody waiting, unless its deliveries
   * are all that the queue hands over: then nobody knows for whom the next one is.
   */
  private inTime(room: Room, now: number): InTime {
    const pace = room.pace(now);
    if (pace > 0 && this.isAlone(now)) {
      const fromQueue = this.keepsQueueWaiting() ? room.paceAtOnset(now) * worthWaitingSeconds : Infinity;
      return { fromQueue, handedOver: Infinity };
    }
    const seconds = this.isHarmless(room) ? worthWaitingSecondsOfHandedOver : worthWaitingSeconds;
    return { fromQueue: pace * worthWaitingSeconds, handedOver: pace * seconds };
  }

  private answer(room: Room, held: readonly Waiting[], reason: HeldReason): void {
    this.withdraw(room, held);
    for (const { resolve } of held) resolve(reason);
  }

  /** They have left its line. */
  private withdraw(room: Room, gone: readonly Waiting[]): void {
    this.waiting -= gone.length;
    for (const { isHandedOver } of gone) if (!isHandedOver) this.waitingFromQueue--;
    if (room.line.length > 0) return;
    this.withLine.delete(room);
    room.origin.withLine.delete(room);
    if (room.origin.withLine.size === 0) this.turns.forget(room.origin);
  }
}

/** A call to it has ended. */
function noteSilence(called: Pick<Room | Origin, 'calling' | 'silentSince'>, isAnswered: boolean, now: number): void {
  if (called.calling === 0) called.silentSince = undefined;
  else if (isAnswered) called.silentSince = now;
}

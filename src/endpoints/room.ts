import type { HeldReason } from '../ledger/delivery.js';
import { Line, type InLine } from './line.js';
import { Congestion } from './congestion.js';
import { Window } from './window.js';

/** Calls of a URL that may be open at first. */
const firstLimit = 8;
/** The same of an origin, which may have many URLs. */
const firstLimitOfOrigin = 32;
/** An endpoint is proven for this long after a call that went well. */
export const provenMs = 60_000;
/** No call is overdue before this, however quick the endpoint is. */
export const shortestOverdueMs = 250;
/** Places that are given back after this time on average suffice for four calls a second each. */
const shortMs = 250;
/** A call is overdue when it takes this many times as long as the calls before it. */
const overdueFactor = 4;
/** A call that takes this much longer than usual is overdue, however slow the endpoint is. */
const longestLateMs = 2000;
const bucketMs = 1000;
/** So much of a second tells the pace of the whole one. */
const tellingMs = 200;

/** A delivery in line. */
export interface Waiting extends InLine {
  resolve: (answer: Place | HeldReason) => void;
}

/** Scheme, host and port. A host hangs as a whole, so all its URLs share a window. */
export class Origin {
  readonly window: Window;
  readonly rooms = new Set<Room>();
  /** Its rooms with deliveries in line, in turns. */
  readonly withLine = new Set<Room>();
  /** Places in the worker that its deliveries have, until they are settled. */
  places = 0;
  /** Calls under way. */
  calling = 0;
  /** Of these, those that take far longer than usual. */
  overdue = 0;
  /** Its places count as those of one whose calls are short: `hasShortCalls` when it was judged last. */
  isShort = false;
  private readonly meanMs = new MeanMs();
  /** Since when it has answered nothing, although calls were under way; undefined: none is. */
  silentSince: number | undefined;

  constructor(
    readonly address: string,
    most: number,
  ) {
    this.window = new Window(firstLimitOfOrigin, most);
  }

  /** No call of it has ended. */
  get isUnknown(): boolean {
    return this.meanMs.value === undefined;
  }

  /** It gives its places back soon: on average, and as far as its calls under way tell. */
  get hasShortCalls(): boolean {
    return this.overdue === 0 && (this.meanMs.value ?? Infinity) <= shortMs;
  }

  /** Another URL than that one answers, as far as is known. */
  answersBeside(address: string): boolean {
    for (const room of this.rooms) if (room.address !== address && room.wasAnswered && room.overdue === 0) return true;
    return false;
  }

  /** A call has ended, also without an answer: until then it had a place. */
  called(durationMs: number): void {
    this.meanMs.add(durationMs);
  }
}

/** Of calls: the last one counts an eighth. */
class MeanMs {
  value: number | undefined;

  add(ms: number): void {
    this.value = this.value === undefined ? ms : this.value + (ms - this.value) / 8;
  }
}

/**
 * The share of a worker that an endpoint may have: one for each callback URL and TLS identity, and for each
 * subscription that has a limit of its own.
 */
export class Room {
  readonly window: Window;
  readonly line = new Line<Waiting>();
  /** Calls under way; fewer than places, of which some wait for a lock. */
  calling = 0;
  /** Of these, those that take far longer than usual. */
  overdue = 0;
  /** Since when it has answered nothing, although calls were under way; undefined: none is. */
  silentSince: number | undefined;
  /** It completes calls well, and none of its open ones is overdue. */
  isProven = false;
  /** The last call that says anything of it went badly. */
  isTroubled = false;
  /** Its last call that tells of its host was answered. */
  wasAnswered = false;
  /** When a delivery asked for it last. */
  askedAt = 0;
  private lastWellAt = -Infinity;
  private readonly congestion = new Congestion();
  /** Of calls that were answered: a timeout says how patient we are, not how quick the endpoint is. */
  private readonly meanMs = new MeanMs();
  /** Calls that ended well in the present second, and in the one before. */
  private completed = 0;
  private completedBefore = 0;
  private bucketStart = 0;

  /** @param address of the endpoint that its URL is by itself */
  constructor(
    readonly address: string,
    readonly origin: Origin,
    most: number,
  ) {
    this.window = new Window(firstLimit, most);
  }

  get isIdle(): boolean {
    return this.window.open === 0 && this.line.length === 0;
  }

  get hasRoom(): boolean {
    return this.window.hasRoom && this.origin.window.hasRoom;
  }

  /** Whether its own open calls, or those of its origin, leave no room: not those that wait for a lock of ours. */
  get isBusy(): boolean {
    return this.calling >= this.window.limit || this.origin.calling >= this.origin.window.limit;
  }

  get overdueMs(): number {
    const usualMs = this.meanMs.value ?? 0;
    return Math.max(shortestOverdueMs, Math.min(overdueFactor * usualMs, usualMs + longestLateMs));
  }

  deservesProven(now: number): boolean {
    return this.overdue === 0 && now - this.lastWellAt <= provenMs;
  }

  /** Calls that ended well within a second, of late: a receiver that hangs completes nothing, however fast it was. */
  pace(now: number): number {
    this.advanceBucket(now);
    return Math.max(this.completed, this.completedBefore);
  }

  /** The same, at the onset of a burst as well: by the part of the present second that has passed. */
  paceAtOnset(now: number): number {
    const pace = this.pace(now);
    const ageMs = now - this.bucketStart;
    return ageMs < tellingMs ? pace : Math.max(pace, (this.completed * bucketMs) / ageMs);
  }

  wentWell(now: number, durationMs: number): void {
    this.congestion.took(durationMs, now);
    this.window.widen(this.congestion.isCongested);
    this.meanMs.add(durationMs);
    this.lastWellAt = now;
    this.isTroubled = false;
    this.wasAnswered = true;
    this.advanceBucket(now);
    this.completed++;
  }

  wasAnsweredBadly(durationMs: number): void {
    this.meanMs.add(durationMs);
    this.wasAnswered = true;
    this.wentBadly();
  }

  /** @param begunAt of the call; undefined: there was none */
  wasUnanswered(now: number, begunAt: number | undefined): void {
    if (this.congestion.isLasting && begunAt !== undefined) this.window.wasTooWide(begunAt, now);
    this.wasAnswered = false;
    this.wentBadly();
  }

  wentBadly(): void {
    this.window.halve();
    this.lastWellAt = -Infinity;
    this.isTroubled = true;
  }

  private advanceBucket(now: number): void {
    const ageMs = now - this.bucketStart;
    if (ageMs < bucketMs) return;
    this.completedBefore = ageMs < 2 * bucketMs ? this.completed : 0;
    this.completed = 0;
    this.bucketStart = now;
  }
}

/**
 * Of a delivery that is being sent: its room at the endpoint, until the answer, and its place in the worker, until it
 * is settled.
 */
export class Place {
  /** When its call began; undefined before. */
  begunAt: number | undefined;
  isOverdue = false;
  hasRoom = true;
  isGivenBack = false;
  /** The address of the open endpoint that its call finds out about. */
  probes: string | undefined;
  /** And did not: its call says something of another endpoint alone. */
  foundNothing = false;

  constructor(readonly room: Room) {}
}

import type { BusyPart } from '../infra/busy-part.js';
import { freshForMs, type Heartbeat } from '../liveness/heartbeat.service.js';
import { backlogPace } from './backlog-pace.metrics.js';
import type { Lane } from './delivery-queue.js';

/** While a backlog is sent beside fresh deliveries: above that, their latency rises faster than the rate. */
const mostBusy: BusyPart = { process: 0.65, machine: 0.75 };
/**
 * Deliveries a second of a process: at the beginning, and at least, also on a machine that is busy with something else.
 */
const rates = { first: 500, least: 400 };
/** The rate is adjusted by so much at most. */
const factors = { down: 0.7, up: 1.3 };
const tickMs = 10;
const ticksToAdjust = 10;
/** With each adjustment, the rate that was used before it counts a fifth less. */
const usedFades = 0.8;
/**
 * A batch takes some 10 ms. One that waited for Postgres or the queue is no reason to keep the next one waiting as
 * long.
 */
const longestRestMs = 100;
/** After so long without a backlog, the next one begins slowly again. */
const idleMs = 1000;
/** Deliveries that may be started together where none was for a moment: retries, which come alone, do not wait. */
const mostSaved = 16;

export type BacklogLane = Exclude<Lane, 'fresh'>;

/**
 * How fast a process hands out and sends deliveries that have waited in the ledger: at full speed, unless this process
 * or another one sends deliveries as they are accepted. Then the rate leaves process and machine some idle time, so
 * that a backlog delays fresh deliveries little, however long it is (docs/decisions/0063).
 */
export class BacklogPace {
  private readonly waiting: Record<BacklogLane, (() => void)[]> = { due: [], slow: [] };
  private turn: BacklogLane = 'due';
  private freshAt = -Infinity;
  private usedAt = -Infinity;
  private perSecond = rates.first;
  private usedPerSecond = 0;
  private handedOut = 0;
  private started = 0;
  private saved = mostSaved;
  private tickedAt = 0;
  private ticks = 0;
  private timer: NodeJS.Timeout | undefined;
  private hasStopped = false;

  /**
   * @param workers that send what this process hands out: its own alone, where the queue is in its memory
   * @param now milliseconds, monotonic
   * @param busy how busy it was since the call before
   */
  constructor(
    private readonly heartbeat: Pick<Heartbeat, 'noteFresh' | 'isOtherFresh'>,
    private readonly workers: () => number,
    private readonly now: () => number,
    private readonly busy: () => BusyPart,
  ) {}

  /** Deliveries have come that were accepted a moment ago. */
  fresh(): void {
    this.freshAt = this.now();
    this.heartbeat.noteFresh();
  }

  /** For each delivery of a backlog. @returns undefined: it may be started; a promise: it waits until then */
  start(lane: BacklogLane): Promise<void> | undefined {
    if (!this.isPaced()) return undefined;
    if (this.saved < 1) return new Promise((resolve) => this.waiting[lane].push(resolve));
    this.saved -= 1;
    this.started += 1;
    return undefined;
  }

  /**
   * At the rate of all workers that send it, together. Without fresh deliveries it rests half of the time: another
   * process may have some, of which this one has not been told yet.
   * @returns milliseconds to wait before more are handed out than these, which took `tookMs`
   */
  restAfter(handedOut: number, tookMs: number): number {
    const restMs = Math.min(tookMs, longestRestMs);
    if (!this.isPaced()) return restMs;
    this.handedOut += handedOut;
    return Math.max(restMs, (handedOut * 1000) / (this.perSecond * this.workers()) - tookMs);
  }

  /** The worker stops: nothing waits any more. */
  stop(): void {
    this.hasStopped = true;
    this.letGo();
  }

  private get isFresh(): boolean {
    return this.now() - this.freshAt < freshForMs || this.heartbeat.isOtherFresh;
  }

  private get inLine(): number {
    return this.waiting.due.length + this.waiting.slow.length;
  }

  private isPaced(): boolean {
    if (this.hasStopped || !this.isFresh) return false;
    this.usedAt = this.now();
    if (!this.timer) this.begin();
    return true;
  }

  private begin(): void {
    [this.perSecond, this.usedPerSecond, this.saved] = [rates.first, 0, mostSaved];
    [this.handedOut, this.started, this.ticks, this.tickedAt] = [0, 0, 0, this.now()];
    this.busy();
    backlogPace.set(this.perSecond);
    this.timer = setInterval(() => this.tick(), tickMs).unref();
  }

  private tick(): void {
    const now = this.now();
    const isIdle = this.inLine === 0 && now - this.usedAt >= idleMs;
    if (isIdle || !this.isFresh) return this.letGo();
    if (++this.ticks % ticksToAdjust === 0) this.adjust();
    const most = Math.max(mostSaved, (this.perSecond * tickMs * 2) / 1000);
    this.saved = Math.min(this.saved + (this.perSecond * (now - this.tickedAt)) / 1000, most);
    this.tickedAt = now;
    while (this.saved >= 1 && this.startNext()) this.saved -= 1;
  }

  /** To twice of what is used at most: what comes after a few retries would begin at any rate. */
  private adjust(): void {
    const { process, machine } = this.busy();
    const pressure = Math.max(process / mostBusy.process, machine / mostBusy.machine, 1 / factors.up);
    const used = (Math.max(this.handedOut, this.started) * 1000) / (tickMs * ticksToAdjust);
    [this.handedOut, this.started] = [0, 0];
    this.usedPerSecond = Math.max(used, this.usedPerSecond * usedFades);
    const wanted = this.perSecond * Math.max(factors.down, 1 / pressure);
    this.perSecond = Math.max(rates.least, Math.min(wanted, Math.max(rates.first, this.usedPerSecond * 2)));
    backlogPace.set(Math.round(this.perSecond));
  }

  /** The lanes take turns. */
  private startNext(): boolean {
    const other = this.turn === 'due' ? 'slow' : 'due';
    const next = this.waiting[this.turn].shift() ?? this.waiting[other].shift();
    if (!next) return false;
    this.turn = other;
    this.started += 1;
    next();
    return true;
  }

  private letGo(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    backlogPace.set(0);
    while (this.startNext());
  }
}

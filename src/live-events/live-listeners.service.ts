import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import type { Writable } from 'node:stream';
import { TooManyRequestsProblem, UnavailableProblem } from '../infra/http/problem.js';
import { RepeatedFailures } from '../infra/logging/repeated-failures.js';
import { Postgres } from '../infra/postgres/postgres.js';
import { Heartbeat } from '../liveness/heartbeat.service.js';
import type { EventFilter } from './event-filter.js';
import { listen, readAfter, readEnds, type EventRow } from './event-table.js';
import { Listener } from './listener.js';
import { listening } from './live-events.counters.js';

const readEveryMs = 250;
const mostRead = 1000;
/** Well within the time that listening lasts without it. */
const listenEveryMs = 15_000;
const aliveEveryMs = 15_000;
/** Each costs a connection and up to a thousand events of memory. */
export const mostListeners = 50;
/** The other half is left to others. */
export const mostOfOne = mostListeners / 2;
/** A token that was made before may not be accepted any more; the listener comes back with another. */
const longestMs = 3_600_000;
const retrySeconds = 10;
const notKept = { event: 'events.missed', count: null, reason: 'not-kept' } as const;

/** Of a listener that is on its way. */
export interface Place {
  /** Where it begins if it has not listened before. */
  readonly now: bigint;
  /** Another one may have the place. The second time it does nothing. */
  leave(): void;
}

/**
 * Tells the listeners of this process what happens in all of them: one look at the table for all listeners together.
 */
@Injectable()
export class LiveListeners implements OnModuleDestroy {
  private readonly logger = new Logger(LiveListeners.name);
  private readonly listeners = new Set<Listener>();
  private readonly joining = new Set<Writable>();
  /** Taken, by listeners and by those that are on their way: of each, its caller. */
  private readonly places: string[] = [];
  /** Of the last event that all listeners have got. */
  private position = 0n;
  private timers: NodeJS.Timeout[] = [];
  private reading: Promise<void> | undefined;
  private readonly reads = new RepeatedFailures(this.logger, {
    failed: { event: 'live-events.not-read' },
    worksAgain: { event: 'live-events.read-again' },
  });
  private listenedAt = -Infinity;
  private isStopping = false;

  constructor(
    private readonly postgres: Postgres,
    private readonly heartbeat: Heartbeat,
  ) {}

  /** All streams end before the server waits for its connections; who listened comes back. */
  onModuleDestroy(): void {
    this.isStopping = true;
    this.timers.forEach(clearInterval);
    for (const listener of this.listeners) listener.end();
    for (const output of this.joining) output.end();
  }

  /**
   * Notes that somebody listens, before the answer begins: whatever happens from then on, and a heartbeat later in
   * other processes, is told.
   * @param caller its id
   * @throws {TooManyRequestsProblem} when too many of this caller listen to this process
   * @throws {UnavailableProblem} when there are too many in this process
   */
  async prepare(caller: string): Promise<Place> {
    if (this.isStopping) throw stopping();
    if (this.places.filter((each) => each === caller).length >= mostOfOne)
      throw new TooManyRequestsProblem(retrySeconds);
    if (this.places.length >= mostListeners)
      throw new UnavailableProblem(`${mostListeners} listen already.`, retrySeconds);
    // Before anything is waited for: hundreds that come at once would all find room otherwise.
    const leave = this.takePlace(caller);
    try {
      const now = await this.keepListening();
      // Nobody would end it any more.
      if (this.isStopping) throw stopping();
      return { now, leave };
    } catch (error) {
      leave();
      throw error;
    }
  }

  private takePlace(caller: string): () => void {
    let isTaken = true;
    this.places.push(caller);
    return () => {
      if (isTaken) this.places.splice(this.places.indexOf(caller), 1);
      isTaken = false;
    };
  }

  /**
   * Tells `output` the events that fit, until it is closed, and the place is free again.
   * @param lastEventId the last one that the listener has got before
   */
  async join(output: Writable, filter: EventFilter, place: Place, lastEventId: bigint | undefined): Promise<void> {
    const { now } = place;
    const isResumed = lastEventId !== undefined;
    // Of another database, or of this one before it was restored. To wait for that number would keep all listeners
    // waiting.
    const isAhead = isResumed && lastEventId > now;
    const listener = new Listener(output, filter, isAhead ? now : (lastEventId ?? now));
    this.joining.add(output);
    const ending = setTimeout(() => listener.end(), longestMs).unref();
    output.once('close', () => {
      clearTimeout(ending);
      this.joining.delete(output);
      this.leave(listener);
      place.leave();
    });
    if (isAhead) listener.tell(notKept);
    else if (isResumed) await this.tellGap(listener);
    listener.alive();
    await this.catchUp(listener, output);
  }

  private async tellGap(listener: Listener): Promise<void> {
    const { first, last } = await readEnds(this.postgres);
    if (listener.position + 1n < (first ?? last + 1n)) listener.tell(notKept);
  }

  /** Reads by itself, until it is where the other listeners are. */
  private async catchUp(listener: Listener, output: Writable): Promise<void> {
    while (!output.destroyed && !output.writableEnded) {
      const { position } = this;
      const rows = await readAfter(this.postgres, listener.position, mostRead);
      listener.take(parsed(rows));
      // By numbers alone it could not be told: those between may have been swept.
      const isThere = rows.length < mostRead && this.position === position;
      // In one go: a look of the others in between would be one that it misses.
      if (isThere && this.joining.delete(output)) return this.add(listener);
    }
  }

  private add(listener: Listener): void {
    // The first one says where this process reads on.
    if (this.listeners.size === 0) this.position = listener.position;
    this.listeners.add(listener);
    listening.inc();
    if (this.listeners.size === 1) this.start();
  }

  private leave(listener: Listener): void {
    if (!this.listeners.delete(listener)) return;
    listening.dec();
    if (this.listeners.size > 0) return;
    this.timers.forEach(clearInterval);
    this.timers = [];
  }

  private start(): void {
    const reading = setInterval(() => {
      this.reading ??= this.read();
    }, readEveryMs);
    const breathing = setInterval(() => this.listeners.forEach((listener) => listener.alive()), aliveEveryMs);
    this.timers = [reading, breathing].map((timer) => timer.unref());
  }

  private async read(): Promise<void> {
    try {
      if (performance.now() - this.listenedAt >= listenEveryMs) await this.keepListening();
      // Many processes write more than a page in the time between two looks.
      while ((await this.readPage()) === mostRead && this.listeners.size > 0);
      this.reads.worked();
    } catch (error) {
      this.reads.failed(error);
      this.listenedAt = -Infinity; // it may be another server, or no longer know that somebody listens
    } finally {
      this.reading = undefined;
    }
  }

  private async readPage(): Promise<number> {
    const rows = await readAfter(this.postgres, this.position, mostRead);
    if (rows.length === 0) return 0;
    const next = BigInt(rows[0]!.id);
    const isGap = next > this.position + 1n && (await this.isSweptUpTo(next));
    this.position = BigInt(rows.at(-1)!.id);
    const events = parsed(rows);
    for (const listener of this.listeners) {
      if (isGap) listener.tell(notKept);
      listener.take(events);
    }
    return rows.length;
  }

  /** Whether nothing older is kept: this process may have stood still for longer than events are. */
  private async isSweptUpTo(id: bigint): Promise<boolean> {
    const { first } = await readEnds(this.postgres);
    return first === undefined || first >= id;
  }

  /** @returns the newest number that was given */
  private async keepListening(): Promise<bigint> {
    await listen(this.postgres);
    this.listenedAt = performance.now();
    this.heartbeat.noteListening();
    const before = this.furthest();
    const { last } = await readEnds(this.postgres);
    // By now all may have gone back already, or somebody may have joined who read further.
    if (last < before && last < this.furthest()) this.goBackTo(last);
    return last;
  }

  private furthest(): bigint {
    return [...this.listeners].reduce((most, { position }) => (position > most ? position : most), this.position);
  }

  /** The database was restored, or a server took over that lacks the last numbers: it gives them once more. */
  private goBackTo(last: bigint): void {
    this.position = last;
    for (const listener of this.listeners) {
      listener.goOnAfter(last);
      listener.tell(notKept);
      listener.alive();
    }
  }
}

const stopping = () => new UnavailableProblem('This process is stopping.', retrySeconds);

const parsed = (rows: readonly EventRow[]) =>
  rows.map((row) => ({ row, event: JSON.parse(row.event) as Record<string, unknown> }));

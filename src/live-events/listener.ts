import type { Writable } from 'node:stream';
import { fits, type EventFilter } from './event-filter.js';
import { recordingBegan, type EventRow } from './event-table.js';
import type { StreamEvent } from './live-event.js';

/** Events that wait for a slow reader. More are dropped, and it is told how many. */
const mostWaiting = 1000;
/** To read the end in. */
const longestEndMs = 5000;

type Parsed = Record<string, unknown>;

/**
 * One who listens: gets the events that fit as a stream of server-sent events, as fast as the connection takes them.
 */
export class Listener {
  /** The number of the last event that was looked at, fitting or not. */
  private last: bigint;
  private waiting: string[] = [];
  private missed = 0;
  private isBlocked = false;

  /** @param after numbers above this one are told */
  constructor(
    private readonly output: Writable,
    private readonly filter: EventFilter,
    after: bigint,
  ) {
    this.last = after;
    output.on('drain', () => this.drained());
  }

  get position(): bigint {
    return this.last;
  }

  /** @param id also lower than before, where numbers are given once more */
  goOnAfter(id: bigint): void {
    this.last = id;
  }

  /** Rows in the order of their numbers; those that it has got are passed over. */
  take(rows: readonly { row: EventRow; event: Parsed }[]): void {
    for (const { row, event } of rows) {
      const id = BigInt(row.id);
      if (id <= this.last) continue;
      this.last = id;
      if (event.event === recordingBegan) {
        // Not its own beginning, which is before its first number.
        this.tell({ event: 'events.missed', count: null, reason: 'not-recorded' });
      } else if (event.event === 'events.missed' || fits(event, this.filter)) {
        this.send(textOf(event, row));
      }
    }
  }

  /** Of the stream itself: it has no number, so that a listener who comes back goes on behind the last event. */
  tell(event: StreamEvent): void {
    this.send(`event: ${event.event}\ndata: ${JSON.stringify(event)}\n\n`);
  }

  /**
   * A comment, by which both sides find out that the other is gone; with the number up to which it has been told, so
   * that who comes back goes on from there although nothing fitted meanwhile.
   */
  alive(): void {
    if (!this.isBlocked) this.write(`: alive\nid: ${this.last}\n\n`);
  }

  end(): void {
    endSoon(this.output);
  }

  private send(text: string): void {
    if (!this.isBlocked) this.write(text);
    else if (this.waiting.length < mostWaiting) this.waiting.push(text);
    else this.missed += 1;
  }

  private write(text: string): void {
    this.isBlocked = !this.output.write(text);
  }

  private drained(): void {
    this.isBlocked = false;
    const texts = this.waiting;
    this.waiting = [];
    if (texts.length > 0) this.write(texts.join(''));
    if (this.missed === 0) return;
    const count = this.missed;
    this.missed = 0;
    this.tell({ event: 'events.missed', count, reason: 'slow-reader' });
  }
}

/**
 * A reader that does not read never comes to the end: its connection is broken off soon, so that it does not keep its
 * place.
 */
export function endSoon(output: Writable): void {
  output.end();
  setTimeout(() => output.destroy(), longestEndMs).unref();
}

function textOf(event: Parsed, { id, at }: EventRow): string {
  const kind = String(event.event as string);
  return `id: ${id}\nevent: ${kind}\ndata: ${JSON.stringify({ id, at: at.toISOString(), ...event })}\n\n`;
}

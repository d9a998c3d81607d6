import { write, writeSync } from 'node:fs';
import type { DestinationStream } from 'pino';
import { BackgroundWriter } from './background-writer.js';
import { linesDroppedCounted } from './logging.counters.js';

const standardOutput = 1;
/** Of the time that stopping may take. */
const flushWithinMs = 1000;
/** A line is written after this time at the latest. */
const collectForMs = 250;

export interface LogOutput extends DestinationStream {
  /** Does not wait. @returns false when more lines should wait until there is room for them */
  write(lines: string): boolean;
  /** Calls `listener` once there is room again, or nobody is left to read: what is written then is dropped. */
  onceRoom(listener: () => void): void;
  /** Resolves when what waited is written, or after a second: nobody may be reading. */
  flush(): Promise<void>;
}

/**
 * Standard output, written in the background and in large pieces: at thousands of events a second a write per line
 * would cost more than the event. While it cannot be written (its reader stops, its disk is full), lines beyond a bound
 * are dropped, and once it can a line says how many. No error of it ends the process: what Heraut is for does not
 * depend on its log.
 * @param minLength characters that are worth a write before a quarter of a second has passed; 1 where the lines come
 *   collected
 */
export function openStandardOutput(minLength = 16_000): LogOutput {
  // Asking for it makes a pipe non-blocking. Otherwise each write to a full pipe would hold a thread, at the end the
  // main one.
  void process.stdout;
  let isEnding = false;
  let collected = '';
  let passing: NodeJS.Timeout | undefined;
  let isRead = true;
  let dropped = 0;
  let waiting: (() => void)[] = [];
  process.once('exit', end);
  const sink = {
    write: (bytes: Buffer, done: (error: NodeJS.ErrnoException | null, written: number) => void) =>
      write(standardOutput, bytes, done),
    writeSync: (bytes: Buffer) => writeSync(standardOutput, bytes),
  };
  const writer = new BackgroundWriter(sink, {
    onDropped: (lines) => {
      const count = lines.split('\n').length - 1;
      dropped += count;
      linesDroppedCounted.inc(count);
    },
    onWritten: () => {
      const line = droppedLine();
      if (line !== '') writer.write(line);
      tellRoom();
    },
    onGone: tellRoom,
  });
  return {
    write: (lines) => {
      if (isEnding) return true;
      collected += lines;
      if (collected.length >= minLength) return passOn();
      passing ??= setTimeout(passOn, collectForMs).unref();
      return true;
    },
    onceRoom: (listener) => void waiting.push(listener),
    flush: () =>
      new Promise((resolve) => {
        const giveUp = setTimeout(() => {
          isRead = false;
          resolve();
        }, flushWithinMs);
        passOn();
        writer.flush(() => {
          clearTimeout(giveUp);
          resolve();
        });
      }),
  };

  /** @returns false when more lines should wait */
  function passOn(): boolean {
    clearTimeout(passing);
    passing = undefined;
    if (collected === '') return true;
    const lines = collected;
    collected = '';
    return writer.write(lines);
  }

  function tellRoom(): void {
    const listeners = waiting;
    waiting = [];
    for (const listener of listeners) listener();
  }

  /** Empty where there is nothing to say. */
  function droppedLine(): string {
    const lines = dropped;
    dropped = 0;
    return lines === 0 ? '' : lineAbout(lines);
  }

  function end(): void {
    isEnding = true;
    clearTimeout(passing);
    // Where nobody reads, `flush` has waited already.
    writer.end(`${collected}${droppedLine()}`, isRead ? performance.now() + flushWithinMs : 0);
  }
}

/** In the format of the log. Not by way of the logger: an operator wants to know it at every LOG_LEVEL. */
const lineAbout = (lines: number): string =>
  `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), event: 'log.lines-dropped', lines })}\n`;

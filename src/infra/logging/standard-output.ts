import { pino, type DestinationStream } from 'pino';
import { linesDroppedCounted } from './logging.counters.js';

const mebibyte = 1024 * 1024;
/** What may wait to be written: the lines of some ten busy seconds. */
const longestBacklog = 16 * mebibyte;
/** Of the time that stopping may take. */
const flushWithinMs = 1000;
/** A line is written after this time at the latest. */
const collectForMs = 250;

export interface LogDestination extends DestinationStream {
  /** Does not wait. @returns false when more lines should wait until there is room for them */
  write(lines: string): boolean;
  /** Calls `listener` once there is room again, or nobody is left to read: what is written then is dropped. */
  onceRoom(listener: () => void): void;
  /** Resolves when what waited is written, or after a second: nobody may be reading. */
  flush(): Promise<void>;
}

/**
 * Standard output, written in the background and in large pieces: at thousands of events a second a write per line would cost
 * more than the event. When its reader stops, lines beyond a bound are dropped, and once it reads again a line says how many.
 * @param minLength characters that are worth a write before a quarter of a second has passed; 1 where the lines come collected
 */
export function openStandardOutput(minLength = 16_000): LogDestination {
  // Asking for it makes a pipe non-blocking. Otherwise each write to a full pipe would hold a thread, at the end the main one.
  void process.stdout;
  let isEnding = false;
  /** Collected here: pino's stream (sonic-boom 4.2.1) copies and counts all that it has collected anew for each line. */
  let collected = '';
  let passing: NodeJS.Timeout | undefined;
  let giveUpAt = Infinity;
  let isRead = true;
  let dropped = 0;
  let waiting: (() => void)[] = [];
  // Before pino adds its own listener, which would write for as long as it takes.
  process.once('exit', end);
  const stream = pino.destination({
    fd: 1,
    sync: false,
    minLength: 1, // with 0, a flush would wait for nothing
    maxLength: longestBacklog,
    retryEAGAIN: () => Date.now() < giveUpAt, // the pipe is full
  });
  stream.on('drop', (lines: string) => {
    const count = lines.split('\n').length - 1;
    dropped += count;
    linesDroppedCounted.inc(count);
  });
  stream.on('drain', () => {
    tellDropped();
    tellRoom();
  });
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    tellRoom(); // there will be no `drain`
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
        stream.flush(() => {
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
    // Once the pipe is broken, pino makes `write` a function that does nothing and returns nothing: that is not a full pipe.
    return stream.write(lines) !== false;
  }

  function tellRoom(): void {
    const listeners = waiting;
    waiting = [];
    for (const listener of listeners) listener();
  }

  function tellDropped(): void {
    if (dropped === 0) return;
    const lines = dropped;
    dropped = 0;
    stream.write(lineAbout(lines));
  }

  function end(): void {
    isEnding = true;
    giveUpAt = isRead ? Date.now() + flushWithinMs : 0; // `flush` has waited already
    try {
      passOn();
      tellDropped();
      stream.flushSync();
    } catch {
      // Nobody reads, so there is nobody to tell.
    }
    stream.destroy();
  }
}

/** In the format of the log. Not by way of the logger: an operator wants to know it at every LOG_LEVEL. */
const lineAbout = (lines: number): string =>
  `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), event: 'log.lines-dropped', lines })}\n`;

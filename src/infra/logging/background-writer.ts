const mebibyte = 1024 * 1024;
/** Bytes that may wait to be written: the lines of some ten busy seconds. */
export const longestBacklog = 16 * mebibyte;
/** With less than this waiting, there is room for more. */
const roomBelow = 16 * 1024;
/** Waiting texts are put together into pieces of about this many characters. */
const pieceLength = 64 * 1024;
/** A pipe that is full is tried again after this. */
const tryFullAfterMs = 100;
/** A disk that is full, or a terminal that is gone, after this. */
const tryFailedAfterMs = 1000;

/** A file, pipe or terminal. */
export interface Sink {
  write(bytes: Buffer, done: (error: NodeJS.ErrnoException | null, written: number) => void): void;
  writeSync(bytes: Buffer): number;
}

interface Listeners {
  /** More waits than may: this text is not written. */
  onDropped(text: string): void;
  /** Nothing waits any more. */
  onWritten(): void;
  /** Nobody is left to read, now or later: all that waits is gone, and all that follows. */
  onGone(): void;
}

/**
 * Writes in the background, in order, and keeps a bounded backlog. No error ends it: a disk that is full gets room, and
 * what a write has begun with is gone on with there. Not sonic-boom, which pino has for this (4.2.1): it tries no more
 * once its backlog is full, and where an error other than EAGAIN meets its last, synchronous write, it repeats that for
 * ever and keeps the process from ending.
 */
export class BackgroundWriter {
  /** As it came, but put together. */
  private waiting: string[] = [];
  /** Of the piece that is being written, which is not in `waiting` any more. */
  private rest = Buffer.alloc(0);
  /** Bytes of both. */
  private backlog = 0;
  private state: 'idle' | 'writing' | 'pausing' | 'gone' | 'ended' = 'idle';
  private flushing: (() => void)[] = [];

  constructor(
    private readonly sink: Sink,
    private readonly listeners: Listeners,
  ) {}

  /** @returns false when more should wait until all is written */
  write(text: string): boolean {
    if (this.state === 'gone' || this.state === 'ended') return true;
    const bytes = Buffer.byteLength(text);
    if (this.backlog + bytes > longestBacklog) this.listeners.onDropped(text);
    else {
      this.backlog += bytes;
      this.push(text);
      if (this.state === 'idle') this.next();
    }
    return this.backlog < roomBelow;
  }

  /** Calls `done` when all is written, or cannot be now. */
  flush(done: () => void): void {
    if (this.state === 'writing' || this.state === 'pausing') this.flushing.push(done);
    else done();
  }

  /**
   * Writes what waits before it returns. The piece that is being written in the background is written there: Node waits
   * for it.
   * @param last is written behind all, whatever waits
   * @param giveUpAt by `performance.now()`, as the clock of the system may be set: until then, a pipe that is full is
   *   tried again
   */
  end(last: string, giveUpAt: number): void {
    const { state } = this;
    this.state = 'ended';
    if (state === 'gone') return;
    if (state !== 'writing' && !this.writeAtOnce(this.rest, giveUpAt)) return;
    for (const text of [...this.waiting, last]) if (!this.writeAtOnce(Buffer.from(text), giveUpAt)) return;
  }

  private push(text: string): void {
    const last = this.waiting.length - 1;
    if (last >= 0 && this.waiting[last]!.length + text.length <= pieceLength) this.waiting[last] += text;
    else this.waiting.push(text);
  }

  private next(): void {
    if (this.rest.length === 0) this.rest = Buffer.from(this.waiting.shift() ?? '');
    if (this.rest.length === 0) {
      this.state = 'idle';
      this.listeners.onWritten();
      // Unless the listener had something to write.
      if (this.backlog === 0) this.tellFlushed();
      return;
    }
    this.state = 'writing';
    this.sink.write(this.rest, (error, written) => this.written(error, written));
  }

  private written(error: NodeJS.ErrnoException | null, written: number): void {
    if (this.state === 'ended') return;
    if (!error) {
      this.rest = this.rest.subarray(written);
      this.backlog -= written;
      return this.next();
    }
    if (error.code === 'EPIPE') return this.gone();
    this.state = 'pausing';
    const isFull = error.code === 'EAGAIN';
    const again = setTimeout(() => this.state === 'pausing' && this.next(), isFull ? tryFullAfterMs : tryFailedAfterMs);
    if (isFull) return;
    again.unref(); // a disk that stays full keeps no process from ending
    this.tellFlushed();
  }

  private gone(): void {
    this.state = 'gone';
    this.waiting = [];
    this.rest = Buffer.alloc(0);
    this.backlog = 0;
    this.listeners.onGone();
    this.tellFlushed();
  }

  private tellFlushed(): void {
    for (const done of this.flushing.splice(0)) done();
  }

  /** @returns whether it could be written */
  private writeAtOnce(bytes: Buffer, giveUpAt: number): boolean {
    for (let rest = bytes; rest.length > 0;) {
      try {
        rest = rest.subarray(this.sink.writeSync(rest));
      } catch (error) {
        // Of another error there is nobody to tell: it is the log that cannot be written.
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || performance.now() >= giveUpAt) return false;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, tryFullAfterMs);
      }
    }
    return true;
  }
}

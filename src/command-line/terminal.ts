import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';

type Output = Writable & { isTTY?: boolean; columns?: number };

/** Where a command reads and writes; tests have their own. */
export interface Streams {
  stdin: Readable & { isTTY?: boolean };
  stdout: Output;
  stderr: Output;
  /** Ctrl-C. @returns ends it */
  onInterrupt: (handler: () => void) => () => void;
}

export class Terminal {
  /** Aborted when the reader of the output has ended (`| head`): what is printed after that is dropped. */
  readonly unread: AbortSignal;

  constructor(private readonly streams: Streams) {
    const unread = new AbortController();
    streams.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'EPIPE') unread.abort();
    });
    this.unread = unread.signal;
  }

  /** Whether people read what is printed. */
  get isInteractive(): boolean {
    return this.streams.stdout.isTTY === true;
  }

  /** Whether somebody can answer a question: not after `readAll`, which has read to the end of what is typed. */
  get canAsk(): boolean {
    const { stdin, stderr } = this.streams;
    return stdin.isTTY === true && !stdin.readableEnded && stderr.isTTY === true;
  }

  get columns(): number {
    return this.streams.stdout.columns ?? 100;
  }

  /** For progress bars. */
  get notes(): Output {
    return this.streams.stderr;
  }

  /**
   * Standard input to its end. Only as a stream: `process.stdin` has made its descriptor one that does not wait, so
   * that a call that reads a file fails with EAGAIN wherever the writer of the pipe is slower.
   */
  readAll(): Promise<Uint8Array> {
    return buffer(this.streams.stdin);
  }

  /** The result. */
  print(text: string): void {
    if (!this.unread.aborted) this.streams.stdout.write(`${text}\n`);
  }

  /** A line beside the output, for people only. */
  note(text: string): void {
    this.streams.stderr.write(`${text}\n`);
  }

  /** @returns false also for Ctrl-C and for the end of the input */
  async ask(question: string): Promise<boolean> {
    const reader = createInterface({ input: this.streams.stdin, output: this.streams.stderr });
    const given = new AbortController();
    reader.once('close', () => given.abort());
    reader.once('SIGINT', () => reader.close());
    try {
      return /^y(es)?$/i.test((await reader.question(`${question} [y/N] `, { signal: given.signal })).trim());
    } catch {
      this.note('');
      return false;
    } finally {
      reader.close();
    }
  }

  /** Does `work` with a signal that Ctrl-C aborts. */
  async untilInterrupted<T>(work: (interrupted: AbortSignal) => Promise<T>): Promise<T> {
    const controller = new AbortController();
    const release = this.streams.onInterrupt(() => controller.abort());
    try {
      return await work(controller.signal);
    } finally {
      release();
    }
  }
}

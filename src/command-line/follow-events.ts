import { setTimeout as pause } from 'node:timers/promises';
import { isPassing, type AdminClient, type QueryValue } from './admin-client.js';
import { EventParser, type ServerSentEvent } from './event-parser.js';

const path = '/admin/v1/events';
/** Three of the comments that the server writes every 15 s. */
const longestSilenceMs = 45_000;
const [firstPauseMs, longestPauseMs] = [1000, 15_000];

export interface Following {
  query: Readonly<Record<string, QueryValue>>;
  /** Of the last event that was got before; undefined: from now on. */
  lastEventId: string | undefined;
  /** Told when the connection is lost, and why, and when there is another one. */
  onLost: (why: string) => void;
  onAgain: () => void;
}

/**
 * Live events, until `stopped`. A connection that is lost is made again, and goes on behind the last event.
 * @throws {AdminRefusal} when the server refuses it
 * @throws {CommandFailure} when the first connection cannot be made
 */
export async function* followEvents(
  client: AdminClient,
  { query, lastEventId, onLost, onAgain }: Following,
  stopped: AbortSignal,
): AsyncGenerator<ServerSentEvent> {
  let last = lastEventId;
  let pauseMs = firstPauseMs;
  let isFirst = true;
  let isLost = false;
  while (!stopped.aborted) {
    try {
      const silence = new Silence(longestSilenceMs, stopped);
      try {
        const headers = { accept: 'text/event-stream', ...(last === undefined ? {} : { 'last-event-id': last }) };
        const { body } = await client.open(path, { query, headers, signal: silence.signal });
        if (isLost) onAgain();
        [isFirst, isLost, pauseMs] = [false, false, firstPauseMs];
        const parser = new EventParser();
        for await (const piece of body!.pipeThrough(new TextDecoderStream())) {
          silence.ended();
          yield* parser.push(piece);
          last = parser.lastId ?? last;
          pauseMs = parser.retryMs ?? pauseMs;
        }
      } finally {
        silence.close();
      }
      // The server has ended it: it is stopping, or the stream has lasted an hour.
    } catch (error) {
      if (stopped.aborted) return;
      if (isFirst || !isPassing(error)) throw error;
      if (!isLost) onLost(error instanceof Error ? error.message : String(error));
      isLost = true;
    }
    await pause(pauseMs, undefined, { signal: stopped }).catch(() => {});
    pauseMs = Math.min(pauseMs * 2, longestPauseMs);
  }
}

/** Ends a request when nothing has come for too long, or when it is stopped. */
class Silence {
  private readonly controller = new AbortController();
  private timer: NodeJS.Timeout;
  private readonly stop = () => this.controller.abort();

  constructor(
    private readonly longestMs: number,
    private readonly stopped: AbortSignal,
  ) {
    stopped.addEventListener('abort', this.stop);
    if (stopped.aborted) this.stop();
    this.timer = this.start();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  ended(): void {
    clearTimeout(this.timer);
    this.timer = this.start();
  }

  close(): void {
    clearTimeout(this.timer);
    this.stopped.removeEventListener('abort', this.stop);
    this.stop(); // one that was left before its end would stay open
  }

  private start(): NodeJS.Timeout {
    return setTimeout(
      () => this.controller.abort(new Error(`nothing came for ${this.longestMs / 1000} s`)),
      this.longestMs,
    );
  }
}

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
      const leaving = new AbortController();
      const tooLong = new Error(`nothing came for ${longestSilenceMs / 1000} s`);
      const silence = setTimeout(() => leaving.abort(tooLong), longestSilenceMs);
      try {
        const headers = { accept: 'text/event-stream', ...(last === undefined ? {} : { 'last-event-id': last }) };
        const signal = AbortSignal.any([leaving.signal, stopped]);
        const { body } = await client.open(path, { query, headers, signal });
        if (isLost) onAgain();
        [isFirst, isLost, pauseMs] = [false, false, firstPauseMs];
        const parser = new EventParser();
        for await (const piece of body!.pipeThrough(new TextDecoderStream())) {
          silence.refresh();
          yield* parser.push(piece);
          last = parser.lastId ?? last;
          pauseMs = parser.retryMs ?? pauseMs;
        }
      } finally {
        clearTimeout(silence);
        leaving.abort(); // one that was left before its end would stay open
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

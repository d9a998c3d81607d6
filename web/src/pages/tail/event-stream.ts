import { EventParser } from '../../../../src/command-line/event-parser.ts';
import { isActive } from '../../api/activity.ts';
import { apiRoot } from '../../api/client.ts';
import { ApiProblem, isUnanswered, mayPass, readProblem } from '../../api/problem.ts';

/** An event as it came; those of the stream itself have no id. */
export interface LiveEvent {
  id?: string;
  at?: string;
  event: string;
  [field: string]: unknown;
}

export type Connection =
  | { kind: 'connecting' }
  | { kind: 'live' }
  /** It is made again by itself. */
  | { kind: 'lost'; since: number }
  /** Likewise: the API refuses it for now, because too many listen for example. */
  | { kind: 'waiting'; error: ApiProblem }
  /** It is not: the API refuses it. */
  | { kind: 'refused'; error: ApiProblem };

interface Following {
  query: Record<string, string>;
  /** Id of the last event that was got before: what came after it is told. */
  after: string | undefined;
  onEvents: (events: LiveEvent[], last: string | undefined) => void;
  onConnection: (connection: Connection) => void;
  signal: AbortSignal;
}

const firstWaitMs = 500;
const longestWaitMs = 8_000;
/**
 * The server says something every 15 seconds; a server that is silent for longer is gone, although the connection does
 * not know yet.
 */
const longestSilenceMs = 40_000;

/**
 * Follows the live events until `signal`. A connection that is lost is made again, and goes on behind the last id: an
 * `EventSource` would give up for good at the first 503 of a proxy, and could not begin at an id.
 */
export async function follow({ query, after, onEvents, onConnection, signal }: Following): Promise<void> {
  let last = after;
  let failures = 0;
  let lostAt: number | undefined;
  onConnection({ kind: 'connecting' });
  while (!signal.aborted) {
    let refusal: ApiProblem | undefined;
    try {
      for await (const { events, id } of connection(query, last, signal)) {
        last = id ?? last;
        [failures, lostAt] = [0, undefined];
        onConnection({ kind: 'live' });
        onEvents(events, last);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiProblem && !mayPass(error)) return onConnection({ kind: 'refused', error });
      if (error instanceof ApiProblem && !isUnanswered(error)) refusal = error;
    }
    if (signal.aborted) return;
    lostAt ??= Date.now();
    onConnection(refusal ? { kind: 'waiting', error: refusal } : { kind: 'lost', since: lostAt });
    await pause(Math.min(firstWaitMs * 2 ** failures, longestWaitMs), signal);
    failures += 1;
  }
}

/** The events of one connection, piece by piece; ends or throws when it is lost. */
async function* connection(
  query: Record<string, string>,
  last: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<{ events: LiveEvent[]; id: string | undefined }> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), longestSilenceMs);
  try {
    const url = new URL(`admin/v1/events?${new URLSearchParams(query).toString()}`, apiRoot);
    const response = await fetch(url, {
      credentials: 'same-origin',
      cache: 'no-store',
      headers: {
        accept: 'text/event-stream',
        'X-Heraut-Console': isActive() ? '1' : '0',
        ...(last && { 'last-event-id': last }),
      },
      signal: AbortSignal.any([signal, silence.signal]),
    });
    if (!response.ok || !response.body) throw readProblem(response, await response.json().catch(() => undefined));
    const parser = new EventParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), longestSilenceMs);
      const events = parser.push(value).map(({ data }) => JSON.parse(data) as LiveEvent);
      yield { events, id: parser.lastId };
    }
  } finally {
    clearTimeout(timer);
  }
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      // A page that is open for days pauses often under one signal.
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });

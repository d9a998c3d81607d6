import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useReducer, useRef, useState } from 'react';
import { isOverKey, sessionKey } from '../../api/session.ts';
import { useIsOver } from '../../shell/session.tsx';
import { follow, type Connection, type LiveEvent } from './event-stream.ts';
import { emptyTail, fitsFilter, tailAfter, type EventFilter, type Tail, type TailAction } from './tail-buffer.ts';

/** Drawn together, that often. */
const drawEveryMs = 200;
/** The API keeps events for five minutes; later it could only say that some were missed. */
const keptMs = 290_000;

/** Of the last visit: a user who opens a notification and comes back finds the events of before, and those since. */
let before: { tail: Tail; last: string | undefined; leftAt: number } | undefined;

interface Following {
  tail: Tail;
  connection: Connection;
  act: (action: TailAction) => void;
  /** Connects anew after a refusal. */
  again: () => void;
}

export function useTail(filter: EventFilter): Following {
  const client = useQueryClient();
  const [tail, act] = useReducer(tailAfter, undefined, () =>
    before && Date.now() - before.leftAt < keptMs ? before.tail : emptyTail,
  );
  const [connection, setConnection] = useState<Connection>({ kind: 'connecting' });
  const [tries, setTries] = useState(0);
  const last = useRef(before && Date.now() - before.leftAt < keptMs ? before.last : undefined);
  const latest = useRef(tail);
  latest.current = tail;
  const text = JSON.stringify(filter);
  const isOver = useIsOver();

  useEffect(() => {
    // When the user is signed in again it goes on behind the last event.
    if (isOver) return;
    const query = JSON.parse(text) as Record<string, string>;
    act({ do: 'narrow', fits: fitsFilter(query) });
    const stopping = new AbortController();
    let come: LiveEvent[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const draw = () => {
      timer = undefined;
      act({ do: 'take', events: come });
      come = [];
    };
    void follow({
      query,
      after: last.current,
      onEvents: (events, id) => {
        last.current = id;
        come.push(...events);
        if (come.length > 0) timer ??= setTimeout(draw, drawEveryMs);
      },
      onConnection: (next) => {
        setConnection((known) => (known.kind === next.kind && next.kind !== 'waiting' ? known : next));
        if (next.kind !== 'refused' || next.error.code !== 'not-signed-in') return;
        // The shell leads to the sign-in, and back; it may have happened in another tab.
        void client.invalidateQueries({ queryKey: sessionKey }).then(() => {
          if (client.getQueryData(isOverKey) !== true) setTries((count) => count + 1);
        });
      },
      signal: stopping.signal,
    });
    return () => {
      stopping.abort();
      clearTimeout(timer);
      if (come.length > 0) {
        act({ do: 'take', events: come });
        latest.current = tailAfter(latest.current, { do: 'take', events: come });
      }
    };
  }, [text, tries, client, isOver]);

  useEffect(
    () => () => {
      before = { tail: tailAfter(latest.current, { do: 'resume' }), last: last.current, leftAt: Date.now() };
    },
    [],
  );
  return { tail, connection, act, again: () => setTries((count) => count + 1) };
}

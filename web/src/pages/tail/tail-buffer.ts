import type { LiveEvent } from './event-stream.ts';

/** More are let go of, the oldest first: nobody reads back so far, and a tab stays open for days. */
export const mostKept = 5_000;

export interface TailRow extends LiveEvent {
  /** Names the row; rises. */
  nr: number;
}

export interface Tail {
  rows: TailRow[];
  /** Came while it was paused. */
  waiting: TailRow[];
  /** Of those, let go of because there were too many. */
  lost: number;
  isPaused: boolean;
  /** Events that came so far. */
  count: number;
}

export const emptyTail: Tail = { rows: [], waiting: [], lost: 0, isPaused: false, count: 0 };

export type TailAction =
  | { do: 'take'; events: LiveEvent[] }
  | { do: 'pause' }
  | { do: 'resume' }
  | { do: 'clear' }
  /** The filter changed: what does not fit goes. */
  | { do: 'narrow'; fits: (event: LiveEvent) => boolean };

export function tailAfter(tail: Tail, action: TailAction): Tail {
  switch (action.do) {
    case 'take': {
      const come = action.events.map((event, index): TailRow => ({ ...event, nr: tail.count + index }));
      const count = tail.count + come.length;
      if (!tail.isPaused) return { ...tail, count, rows: [...tail.rows, ...come].slice(-mostKept) };
      const waiting = [...tail.waiting, ...come];
      const lost = tail.lost + Math.max(0, waiting.length - mostKept);
      return { ...tail, count, waiting: waiting.slice(-mostKept), lost };
    }
    case 'pause':
      return { ...tail, isPaused: true };
    case 'resume':
      return {
        ...tail,
        isPaused: false,
        rows: [...tail.rows, ...tail.waiting].slice(-mostKept),
        waiting: [],
        lost: 0,
      };
    case 'clear':
      return { ...tail, rows: [], waiting: [], lost: 0 };
    case 'narrow':
      return { ...tail, rows: tail.rows.filter(action.fits), waiting: tail.waiting.filter(action.fits) };
  }
}

export const filterNames = ['event', 'channel', 'subscription', 'state'] as const;
export type EventFilter = Partial<Record<(typeof filterNames)[number], string>>;

/** As the API judges it. */
export const fitsFilter =
  ({ event, channel, subscription, state }: EventFilter) =>
  (each: LiveEvent): boolean =>
    each.event === 'events.missed' ||
    ((event === undefined || each.event === event) &&
      (channel === undefined || each['channel'] === channel) &&
      (subscription === undefined || each['subscriptionId'] === subscription) &&
      (state === undefined || each['state'] === state));

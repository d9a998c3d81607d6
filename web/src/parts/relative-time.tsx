import { Text, type TextProps } from '@mantine/core';
import { useEffect, useReducer } from 'react';
import { useFormat } from '../i18n/format.ts';

/** One clock for all times on a page: a hundred timers would each draw it anew. */
const listeners = new Set<() => void>();
let ticking: ReturnType<typeof setInterval> | undefined;

function useNow(): number {
  const [, tick] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    listeners.add(tick);
    ticking ??= setInterval(() => listeners.forEach((each) => each()), 5_000);
    return () => {
      listeners.delete(tick);
      if (listeners.size > 0) return;
      clearInterval(ticking);
      ticking = undefined;
    };
  }, []);
  // As of this drawing: what has just come would lie in the future of the last tick.
  return Date.now();
}

/** For a time in the middle of a text, which has to go on as `RelativeTime` does. */
export function useRelative(): (at: string) => string {
  const format = useFormat();
  const now = useNow();
  return (at) => format.relative(at, now);
}

interface Props extends TextProps {
  /** Nothing: a dash. */
  at: string | number | Date | null | undefined;
}

/** "3 minutes ago", with the exact time on hover: for lists, which lead on to details that have an `ExactTime`. */
export function RelativeTime({ at, ...text }: Props) {
  const format = useFormat();
  const now = useNow();
  if (at === null || at === undefined)
    return (
      <Text span inherit {...text}>
        –
      </Text>
    );
  return (
    <Text span inherit {...text}>
      <time dateTime={new Date(at).toISOString()} title={format.time(at)}>
        {format.relative(at, now)}
      </time>
    </Text>
  );
}

/** The exact time and, behind it, how long ago that is: a pointer is not needed for either. */
export function ExactTime({ at }: { at: string | number | Date }) {
  const format = useFormat();
  return (
    <>
      {format.time(at)} (<RelativeTime at={at} />)
    </>
  );
}

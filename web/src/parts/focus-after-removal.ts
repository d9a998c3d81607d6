import { useEffect, useRef, type RefObject } from 'react';

interface Removal<E extends HTMLElement> {
  /** Of an element around the list. */
  list: RefObject<E | null>;
  /** To be called with the place of what is about to be removed. */
  removing: (at: number) => void;
}

/**
 * The button that removes one of a list goes with it, and the focus would be nowhere: it goes on at the next such
 * button, or at the last one.
 * @param kind those buttons have it as `data-removes`; lists may lie in one another
 * @param count of what there is
 * @param none is left: gives the focus to where one is added
 */
export function useFocusAfterRemoval<E extends HTMLElement>(kind: string, count: number, none: () => void): Removal<E> {
  const list = useRef<E>(null);
  /** Until it is gone. */
  const removed = useRef<number>(undefined);
  useEffect(() => {
    const at = removed.current;
    if (at === undefined) return;
    removed.current = undefined;
    const left = [...(list.current?.querySelectorAll<HTMLElement>(`[data-removes="${kind}"]`) ?? [])];
    const next = left[at] ?? left.at(-1);
    if (next) next.focus();
    else none();
  }, [count]);
  return { list, removing: (at) => void (removed.current = at) };
}

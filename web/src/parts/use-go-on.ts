import { useNavigate, type NavigateOptions } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';

/** Tells whether the component is still on the page: an answer may come after another page was opened. */
function useIsShown(): () => boolean {
  const isShown = useRef(false);
  useEffect(() => {
    isShown.current = true;
    return () => void (isShown.current = false);
  }, []);
  return () => isShown.current;
}

/**
 * Goes to another page once something is done here. Nobody is asked: what was typed over it goes with it. Somebody who
 * has left meanwhile stays where they are, with what they type there.
 */
export function useGoOn(): (to: NavigateOptions) => Promise<void> {
  const navigate = useNavigate();
  const isShown = useIsShown();
  return async (to) => {
    if (isShown()) await navigate({ ...to, ignoreBlocker: true });
  };
}

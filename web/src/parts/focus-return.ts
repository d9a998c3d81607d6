import { useEffect, useState } from 'react';

/**
 * For a dialog that comes into being open, after which Mantine leaves the focus nowhere: when the dialog goes, the
 * focus is where it was before.
 */
export function useFocusWhereItWas(): void {
  const [before] = useState(() => document.activeElement);
  useEffect(
    () => () => {
      if (document.activeElement === document.body && before instanceof HTMLElement)
        before.focus({ preventScroll: true });
    },
    [before],
  );
}

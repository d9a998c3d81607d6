import { Button, Loader, type ButtonProps } from '@mantine/core';
import type { ComponentPropsWithoutRef, Ref } from 'react';

interface Props extends ButtonProps, Omit<ComponentPropsWithoutRef<'button'>, keyof ButtonProps> {
  ref?: Ref<HTMLButtonElement>;
  isBusy: boolean;
  /** There is nothing to do for it now; as there may be in a moment, it can have the focus all the same. */
  isIdle?: boolean;
}

/**
 * A button that says when what it began is under way, and takes no other press until then. It is not `disabled`
 * meanwhile, as with `loading`: a browser takes the focus from a disabled button, and Tab begins at the top of the
 * page.
 */
export function BusyButton({ isBusy, isIdle = false, onClick, leftSection, ...button }: Props) {
  const isOff = isBusy || isIdle;
  return (
    <Button
      {...button}
      aria-busy={isBusy}
      aria-disabled={isOff || undefined}
      data-disabled={isIdle || undefined}
      leftSection={isBusy ? <Loader size={14} color="currentColor" aria-hidden /> : leftSection}
      onClick={(event) => {
        // Enter in a field of its form presses it as well.
        if (isOff) event.preventDefault();
        else onClick?.(event);
      }}
    />
  );
}

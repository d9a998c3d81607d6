import { Modal, Stack, Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useSession, useWaysIn } from './session.tsx';
import { SignInForm } from './sign-in-form.tsx';
import { useSignInTexts } from './sign-in-texts.ts';

/** A user who signs in in another tab need not come back and press something here. */
const lookEveryMs = 2000;

/** Over the page whose session has ended: the page stays as it is, and goes on when the user is signed in again. */
export function SignInAgain() {
  const t = useSignInTexts();
  useSession(lookEveryMs);
  const waysIn = useWaysIn();
  useReturnOfFocus();
  return (
    <Modal
      opened
      onClose={() => {}}
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      title={t('overTitle')}
      size="sm"
      centered
    >
      <Stack gap="md">
        <Text size="sm">{t('overDetail')}</Text>
        {waysIn && <SignInForm waysIn={waysIn} to="sign-in?done=1" inNewTab />}
      </Stack>
    </Modal>
  );
}

/** To where somebody was before this dialog came, or, where that is gone, into the dialog that is open below it. */
function useReturnOfFocus() {
  const [before] = useState(() => document.activeElement);
  useEffect(
    () => () =>
      // After this dialog, and its keeping of the focus, is gone.
      void setTimeout(() => {
        if (before instanceof HTMLElement && before !== document.body && before.isConnected) return before.focus();
        [...document.querySelectorAll<HTMLElement>('[role="dialog"]')].at(-1)?.focus();
      }),
    [before],
  );
}

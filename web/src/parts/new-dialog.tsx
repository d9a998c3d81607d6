import { Button, Group, Modal, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { defineTexts } from '../i18n/i18n.ts';
import { AskUnderWay } from './leaving.tsx';
import { ProblemAlert } from './problem-alert.tsx';

const useTexts = defineTexts('new-dialog', { cancel: 'Cancel' }, { cancel: 'Annuleren' });

interface Props {
  opened: boolean;
  onClose: () => void;
  /** Of the dialog, and of the button that makes it: "Add channel". */
  title: string;
  /** Of the last try; what was typed stays. */
  error: unknown;
  isBusy: boolean;
  /** The input can be sent. */
  isReady?: boolean;
  onSubmit: () => void;
  children: ReactNode;
}

/** The form of something new. */
export function NewDialog({ opened, onClose, title, error, isBusy, isReady = true, onSubmit, children }: Props) {
  const t = useTexts();
  // It cannot be called back any more, and what became of it has to be seen.
  const leave = () => {
    if (!isBusy) onClose();
  };
  return (
    <Modal opened={opened} onClose={leave} title={title} size="lg" closeOnClickOutside={false}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        <Stack gap="md">
          {children}
          {error !== null && <ProblemAlert error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={leave} disabled={isBusy}>
              {t('cancel')}
            </Button>
            <Button type="submit" loading={isBusy} disabled={!isReady}>
              {title}
            </Button>
          </Group>
        </Stack>
      </form>
      <AskUnderWay isBusy={isBusy} />
    </Modal>
  );
}

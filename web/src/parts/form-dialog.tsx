import { Button, Group, Modal, Stack, type ModalProps } from '@mantine/core';
import { defineTexts } from '../i18n/i18n.ts';
import { BusyButton } from './busy-button.tsx';
import { AskUnderWay, unlessBusy } from './leaving.tsx';

const useTexts = defineTexts('form-dialog', { cancel: 'Cancel' }, { cancel: 'Annuleren' });

interface Props extends Pick<
  ModalProps,
  'opened' | 'title' | 'size' | 'centered' | 'closeOnClickOutside' | 'children'
> {
  onClose: () => void;
  /** Of the space between its parts. */
  gap?: 'sm' | 'md';
  isBusy: boolean;
  onSubmit: () => void;
  /** The button that sends it, with one beside it that closes the dialog. Without it, the form has its own. */
  submit?: { text: string; isReady: boolean; color?: string | undefined };
}

/** A dialog with a form, which is not left while what it asked for is under way. */
export function FormDialog({ children, gap = 'sm', isBusy, onClose, onSubmit, submit, ...modal }: Props) {
  const t = useTexts();
  const leave = unlessBusy(isBusy, onClose);
  return (
    <Modal {...modal} onClose={leave}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (modal.opened) onSubmit(); // not at a second press, while it fades away
        }}
      >
        <Stack gap={gap}>
          {children}
          {submit && (
            <Group justify="flex-end">
              <Button variant="default" onClick={leave} disabled={isBusy}>
                {t('cancel')}
              </Button>
              <BusyButton type="submit" color={submit.color} isBusy={isBusy} disabled={!submit.isReady}>
                {submit.text}
              </BusyButton>
            </Group>
          )}
        </Stack>
      </form>
      <AskUnderWay isBusy={isBusy} />
    </Modal>
  );
}

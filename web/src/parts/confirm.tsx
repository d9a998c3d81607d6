import { Text, TextInput } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { defineTexts } from '../i18n/i18n.ts';
import { FormDialog } from './form-dialog.tsx';
import { ProblemAlert } from './problem-alert.tsx';

const useTexts = defineTexts(
  'confirm',
  { type: 'Type {{word}} to confirm' },
  { type: 'Typ {{word}} om te bevestigen' },
);

export interface ConfirmProps {
  opened: boolean;
  onClose: () => void;
  /** Names what happens, with its count: "Drop 1,204 held deliveries?" */
  title: string;
  children?: ReactNode;
  /** The verb: "Drop 1,204". */
  action: string;
  /** Has to be typed where it cannot be undone and is large. */
  word?: string;
  isDangerous?: boolean;
  /** It can be done no more. */
  isMoot?: boolean;
  /** The dialog closes when it succeeds; an error stays in it, with what was typed. */
  onConfirm: () => Promise<unknown>;
  /** Errors that `children` say in words of their own. */
  isSaid?: (error: unknown) => boolean;
}

/** Asks before what cannot be undone. */
export function Confirm({
  opened,
  onClose,
  title,
  children,
  action,
  word,
  isDangerous = true,
  isMoot = false,
  onConfirm,
  isSaid = () => false,
}: ConfirmProps) {
  const t = useTexts();
  const [typed, setTyped] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const close = () => {
    setTyped('');
    setError(undefined);
    onClose();
  };
  const confirm = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await onConfirm();
      close();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <FormDialog
      opened={opened}
      onClose={close}
      title={title}
      centered
      isBusy={isBusy}
      onSubmit={() => void confirm()}
      submit={{
        text: action,
        isReady: !isMoot && (word === undefined || typed.trim() === word),
        color: isDangerous ? 'red' : undefined,
      }}
    >
      {typeof children === 'string' ? <Text size="sm">{children}</Text> : children}
      {word !== undefined && (
        <TextInput
          label={t('type', { word })}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          autoComplete="off"
          data-autofocus
        />
      )}
      {error !== undefined && !isSaid(error) && <ProblemAlert error={error} />}
    </FormDialog>
  );
}

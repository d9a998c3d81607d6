import { Alert, Stack, Text } from '@mantine/core';
import { TbUsers } from 'react-icons/tb';
import { useState, type ReactNode } from 'react';
import { isProblem } from '../api/problem.ts';
import { defineTexts } from '../i18n/i18n.ts';
import { Confirm, type ConfirmProps } from '../parts/confirm.tsx';
import { FieldDiff } from '../parts/field-diff.tsx';
import { changesBetween } from './draft.ts';

const useTexts = defineTexts(
  'confirm-over',
  {
    changed: 'This was changed after you opened the dialog',
    refused: 'Nothing was done yet, and it was read again. Confirm once more to do it to what there is now.',
    same: 'The part that is shown is as before.',
  },
  {
    changed: 'Dit is gewijzigd nadat u dit venster opende',
    refused: 'Er is nog niets gedaan, en het is opnieuw gelezen. Bevestig nog eens om het te doen met wat er nu is.',
    same: 'Het getoonde deel is als voorheen.',
  },
);

interface Props extends ConfirmProps {
  /** The object of the action, as it is now as far as the page knows: `onConfirm` sends its tag. */
  now: object;
  readAgain: () => Promise<unknown>;
  /** A remark on a change, beside the change itself. */
  remark?: ReactNode;
}

const isRefusal = (error: unknown): boolean => isProblem(error, 'changed-meanwhile');

/**
 * Asks before something is done to what others may change at the same time, or one's own try whose answer was lost.
 * Then it is read again, the dialog shows what is other than when it was opened, and is confirmed over that.
 */
export function ConfirmOver({ now, readAgain, remark, opened, onConfirm, isSaid, children, ...confirm }: Props) {
  const [before, setBefore] = useState<object>();
  const [isRefused, setRefused] = useState(false);
  const [isBusy, setBusy] = useState(false);
  if (opened !== (before !== undefined)) {
    setBefore(opened ? now : undefined);
    setRefused(false);
  }
  const tryIt = async () => {
    setBusy(true);
    setRefused(false);
    try {
      await onConfirm();
    } catch (failure) {
      if (isRefusal(failure)) {
        await readAgain();
        setRefused(true);
      } else void readAgain(); // which takes as long as nothing answers
      throw failure;
    } finally {
      setBusy(false);
    }
  };
  return (
    <Confirm
      {...confirm}
      opened={opened}
      onConfirm={tryIt}
      isSaid={(error) => isRefusal(error) || isSaid?.(error) === true}
    >
      <Stack gap="sm">
        {typeof children === 'string' ? <Text size="sm">{children}</Text> : children}
        {/* Until the answer is there it may be one's own. */}
        {!isBusy && before !== undefined && <Changes before={before} now={now} isRefused={isRefused} remark={remark} />}
      </Stack>
    </Confirm>
  );
}

interface ChangesProps {
  before: object;
  now: object;
  isRefused: boolean;
  remark: ReactNode;
}

function Changes({ before, now, isRefused, remark }: ChangesProps) {
  const t = useTexts();
  const changes = changesBetween(before, now);
  if (changes.length === 0 && !isRefused) return null;
  return (
    <Alert color="orange" variant="light" role="alert" icon={<TbUsers aria-hidden />} title={t('changed')}>
      {isRefused && <Text size="sm">{t('refused')}</Text>}
      {changes.length === 0 ? <Text size="sm">{t('same')}</Text> : <FieldDiff fields={changes} />}
      {remark && (
        <Text size="sm" mt="xs">
          {remark}
        </Text>
      )}
    </Alert>
  );
}

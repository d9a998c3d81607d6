import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { IconUsers } from '@tabler/icons-react';
import { isProblem } from '../api/problem.ts';
import { defineTexts } from '../i18n/i18n.ts';
import { ProblemAlert } from './problem-alert.tsx';
import type { Draft } from './use-draft.ts';

const useTexts = defineTexts(
  'save',
  {
    save: 'Save',
    discard: 'Discard changes',
    changedTitle: 'Somebody else changed this meanwhile',
    changedDetail: 'What you typed is still here. Look at their version, or save yours over it.',
    theirs: 'Show their version',
    mine: 'Save mine',
  },
  {
    save: 'Opslaan',
    discard: 'Wijzigingen verwerpen',
    changedTitle: 'Iemand anders heeft dit intussen gewijzigd',
    changedDetail: 'Wat u typte staat er nog. Bekijk de andere versie, of sla de uwe eroverheen op.',
    theirs: 'Toon de andere versie',
    mine: 'Bewaar de mijne',
  },
);

interface Props<T> {
  draft: Draft<T>;
  /** Of the last attempt to save. */
  error: unknown;
  isSaving: boolean;
  /** What was typed cannot be saved as it is; beside it stands why. */
  isInvalid?: boolean;
  onSave: () => void;
  /** Saves over what somebody else has made of it: with the tag that it has now. */
  onSaveOver: () => void;
  /** Forgets what was typed, and the error. */
  onDiscard: () => void;
}

/** Stands at the end of what is edited: saves, and says who was faster. */
export function SaveBar<T>({ draft, error, isSaving, isInvalid = false, onSave, onSaveOver, onDiscard }: Props<T>) {
  const t = useTexts();
  const isChanged = isProblem(error, 'changed-meanwhile') || draft.isOutdated;
  return (
    <Stack gap="sm">
      {isChanged && (
        <Alert color="yellow" title={t('changedTitle')} icon={<IconUsers aria-hidden />} role="alert">
          <Text size="sm">{t('changedDetail')}</Text>
          <Group mt="xs" gap="xs">
            <Button size="xs" variant="default" onClick={onDiscard}>
              {t('theirs')}
            </Button>
            <Button size="xs" variant="default" onClick={onSaveOver} loading={isSaving} disabled={isInvalid}>
              {t('mine')}
            </Button>
          </Group>
        </Alert>
      )}
      {!isChanged && error !== null && error !== undefined && <ProblemAlert error={error} />}
      <Group gap="xs">
        <Button onClick={onSave} loading={isSaving} disabled={!draft.isDirty || isChanged || isInvalid}>
          {t('save')}
        </Button>
        {draft.isDirty && (
          <Button variant="default" onClick={onDiscard} disabled={isSaving}>
            {t('discard')}
          </Button>
        )}
      </Group>
    </Stack>
  );
}

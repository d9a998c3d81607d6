import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { TbUsers } from 'react-icons/tb';
import { useContext, useRef, useState } from 'react';
import { isProblem } from '../api/problem.ts';
import { defineTexts } from '../i18n/i18n.ts';
import { BusyButton } from '../parts/busy-button.tsx';
import { LeaveQuestion, useBlockedLeaving } from '../parts/leaving.tsx';
import { ProblemAlert } from '../parts/problem-alert.tsx';
import { IsGone, isElsewhere, type Draft } from './use-draft.ts';

const useTexts = defineTexts(
  'draft',
  {
    save: 'Save',
    discard: 'Discard changes',
    unsaved: 'Not saved yet',
    saved: 'Saved',
    gone: 'This is not there any more: what you typed can be copied, and not be saved.',
    changed: 'Somebody else changed this meanwhile',
    changedDetail: 'Your changes are kept. Load their version, or save yours over it.',
    perhaps: 'This was changed since you began to type',
    perhapsDetail:
      'By you or by somebody else, and perhaps elsewhere: secrets are never shown, so it cannot be told. Your changes are kept: discard them, or save them over what there is now.',
    loadTheirs: 'Load their version',
    saveMine: 'Save mine over it',
    leave: 'Leave without saving?',
    leaveDetail: 'Your changes here are not saved.',
  },
  {
    save: 'Opslaan',
    discard: 'Wijzigingen verwerpen',
    unsaved: 'Nog niet opgeslagen',
    saved: 'Opgeslagen',
    gone: 'Dit is er niet meer: wat u typte kunt u kopiëren, niet opslaan.',
    changed: 'Iemand anders heeft dit intussen gewijzigd',
    changedDetail: 'Uw wijzigingen zijn bewaard. Laad de andere versie, of sla de uwe eroverheen op.',
    perhaps: 'Dit is gewijzigd sinds u begon te typen',
    perhapsDetail:
      'Door u of door iemand anders, en misschien elders: geheimen worden nooit getoond, dus dat is niet te zien. Uw wijzigingen zijn bewaard: verwerp ze, of sla ze op over wat er nu is.',
    loadTheirs: 'Laad de andere versie',
    saveMine: 'Mijn versie opslaan',
    leave: 'Verlaten zonder op te slaan?',
    leaveDetail: 'Uw wijzigingen hier zijn niet opgeslagen.',
  },
);

interface Props<T> {
  draft: Draft<T>;
  /** Something typed cannot be saved as it is. */
  isInvalid?: boolean;
  /** Of what can never be shown: whether it is another cannot be told, and there is nothing to load. */
  isSecret?: boolean;
  /** Says it; left out: the bar does. */
  onSaved?: () => void;
}

/** The end of every form: saves, discards, and says what came between. */
export function DraftBar<T>({ draft, isInvalid = false, isSecret = false, onSaved }: Props<T>) {
  const t = useTexts();
  const { isDirty, isSaving, error, theirs } = draft;
  const isGone = useContext(IsGone);
  const { asked, stay } = useBlockedLeaving(isDirty, isElsewhere);
  const [isSaved, setSaved] = useState(false);
  const isRefused = isProblem(error, 'changed-meanwhile');
  const save = useRef<HTMLButtonElement>(null);
  const then = async (saving: Promise<boolean>) => {
    if (!(await saving)) return;
    setSaved(true);
    onSaved?.();
  };
  const discard = () => {
    setSaved(false);
    draft.reset();
    // The button that asked for it goes.
    save.current?.focus();
  };
  return (
    <Stack gap="sm">
      {isGone ? null : theirs !== undefined ? (
        <Alert
          color="orange"
          variant="light"
          role="alert"
          icon={<TbUsers aria-hidden />}
          title={t(isSecret ? 'perhaps' : 'changed')}
        >
          <Text size="sm">{t(isSecret ? 'perhapsDetail' : 'changedDetail')}</Text>
          <Group mt="xs" gap="xs">
            {!isSecret && (
              <Button size="xs" variant="default" onClick={discard}>
                {t('loadTheirs')}
              </Button>
            )}
            <Button size="xs" variant="default" disabled={isInvalid} onClick={() => void then(draft.saveOverTheirs())}>
              {t('saveMine')}
            </Button>
          </Group>
        </Alert>
      ) : (
        error !== undefined && <ProblemAlert error={error} onRetry={() => void then(draft.save())} />
      )}
      <Group gap="sm">
        {!isGone && (
          <BusyButton
            ref={save}
            onClick={() => void then(draft.save())}
            isBusy={isSaving}
            isIdle={!isDirty || isInvalid || (theirs !== undefined && isRefused)}
          >
            {t('save')}
          </BusyButton>
        )}
        {isDirty && (
          <Button variant="default" onClick={discard} disabled={isSaving}>
            {t('discard')}
          </Button>
        )}
        <Text size="sm" c="dimmed" role="status">
          {isGone ? t('gone') : isDirty ? t('unsaved') : isSaved && !onSaved ? t('saved') : ''}
        </Text>
      </Group>
      <LeaveQuestion
        opened={asked !== undefined}
        title={t('leave')}
        detail={t('leaveDetail')}
        onStay={stay}
        onLeave={() => asked?.()}
      />
    </Stack>
  );
}

import { Button, Group, Paper, Text } from '@mantine/core';
import { useFormat } from '../../i18n/format.ts';
import type { Act } from '../../selection/act-dialog.tsx';
import { deadStates, selectionOf, type Criteria } from '../../selection/selection.ts';
import { useMay } from '../../shell/session.tsx';
import type { Choice } from './choice.ts';
import classes from './dead-letters.module.css';
import { keyOfGroup } from './receivers.ts';
import { useDeadLettersTexts } from './texts.ts';
import type { DeadLetterGroup } from './use-dead-letters.ts';

interface Props {
  choice: Choice;
  criteria: Criteria;
  /** That are shown, with their counts. */
  groups: readonly DeadLetterGroup[];
  onAct: (act: Act) => void;
}

/**
 * The selection, and the actions on it. Groups and single ones are two selections: each has its own count to confirm.
 */
export function ChoiceBar({ choice, criteria, groups, onAct }: Props) {
  const t = useDeadLettersTexts();
  const format = useFormat();
  const may = useMay('operator');
  const { channels, acceptedFrom, acceptedTo, replay } = criteria;
  const chosen = groups.filter((group) => choice.hasGroup(group));
  const parts = [];
  // Those of which nothing is left are no longer meant.
  if (chosen.length > 0) {
    const letters = chosen.reduce((sum, { count }) => sum + count, 0);
    const number = format.number(letters);
    const shown = chosen.some(({ isAtLeast }) => isAtLeast) ? t('atLeast', { shown: number }) : number;
    const count = chosen.length;
    parts.push({
      key: 'groups',
      what: t('groups', {
        count,
        shown: format.number(count),
        letters: t('letters', { count: letters, shown }),
      }),
      selection: selectionOf({ channels, acceptedFrom, acceptedTo, replay }, { groups: chosen.map(keyOfGroup) }),
    });
  }
  if (choice.deliveries.length > 0) {
    const count = choice.deliveries.length;
    parts.push({
      key: 'single',
      what: t('letters', { count, shown: format.number(count) }),
      selection: selectionOf({ states: [...deadStates] }, { deliveries: choice.deliveries }),
    });
  }
  if (parts.length === 0) return null;
  return (
    <Paper withBorder shadow="md" p="sm" className={classes.bar} role="region" aria-label={t('actions')}>
      {parts.map(({ key, what, selection }) => (
        <Group key={key} justify="space-between" gap="sm" mih={40}>
          <Text size="sm" aria-live="polite">
            {t('selected', { what })}
          </Text>
          <Group gap="xs">
            <Button size="sm" disabled={!may} onClick={() => onAct({ kind: 'replay', selection })}>
              {t('sendAgain')}
            </Button>
            <Button size="sm" variant="default" disabled={!may} onClick={() => onAct({ kind: 'close', selection })}>
              {t('close')}
            </Button>
            <Button size="sm" variant="subtle" onClick={() => choice.clear()}>
              {t('clear')}
            </Button>
          </Group>
        </Group>
      ))}
      {choice.isFull && (
        <Text size="xs" c="dimmed" role="status">
          {t('full')}
        </Text>
      )}
    </Paper>
  );
}

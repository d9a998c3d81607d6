import { Button, Group, NumberInput, Paper, SimpleGrid, Skeleton, Stack, Switch, Text, Title } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ConfirmOver } from '../../drafts/confirm-over.tsx';
import { DraftBar } from '../../drafts/draft-bar.tsx';
import { useResourceDraft, type Tagged } from '../../drafts/use-resource-draft.ts';
import { DurationInput } from '../../parts/duration-input.tsx';
import { errorOf } from '../../parts/field-errors.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { useMay } from '../../shell/session.tsx';
import { readRules, rulesKey, writeRules, type AlertRules } from './alerts.ts';
import { Recipients } from './recipients.tsx';
import { RuleFields } from './rule-fields.tsx';
import { useAlertTexts } from './texts.ts';
import { isComplete, type TypedRules } from './typed-rules.ts';

/** When somebody is told, and who. */
export function AlertRulesEditor() {
  const { data, error, refetch } = useQuery({ queryKey: rulesKey, queryFn: ({ signal }) => readRules(signal) });
  return (
    <Stack gap="md">
      {error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
      {data ? <Rules current={data} /> : !error && <Skeleton height={520} radius="md" />}
    </Stack>
  );
}

function Rules({ current }: { current: Tagged<AlertRules> }) {
  const t = useAlertTexts();
  const client = useQueryClient();
  const mayChange = useMay('administrator');
  const [isAsking, ask] = useState(false);
  const draft = useResourceDraft<AlertRules, TypedRules>({
    query: { queryKey: rulesKey, read: readRules },
    current,
    valueOf: (rules) => rules,
    // Saved only while they are complete.
    write: (typed, tag) => writeRules(typed as AlertRules, tag),
    alsoChanges: [['alerts']],
  });
  const { value: values } = draft;
  const change = (changes: Partial<TypedRules>) => draft.change({ ...values, ...changes });
  return (
    <Stack gap="md">
      <Recipients tellsOwners={values.tellsOwners} />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <RuleFields rules={values} saved={current.data} onChange={change} error={draft.error} isReadOnly={!mayChange} />
      </SimpleGrid>
      <Paper withBorder p="md">
        <Title order={2} size="h3" mb="sm">
          {t('general')}
        </Title>
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <NumberInput
            label={t('repeat')}
            description={t('repeatHint')}
            value={values.repeatAfterHours ?? ''}
            onChange={(hours) => change({ repeatAfterHours: hours === '' ? null : Number(hours) })}
            error={errorOf(draft.error, 'repeatAfterHours')}
            suffix={` ${t('hours')}`}
            // A lone sign is no number, and without a number nobody is told again.
            allowNegative={false}
            allowDecimal={false}
            hideControls
            readOnly={!mayChange}
          />
          <DurationInput
            label={t('group')}
            description={t('groupHint')}
            value={values.groupSeconds}
            onChange={(seconds) => change({ groupSeconds: seconds })}
            error={values.groupSeconds === null ? t('timeNeeded') : errorOf(draft.error, 'groupSeconds')}
            disabled={!mayChange}
          />
        </SimpleGrid>
        <Switch
          mt="md"
          label={t('tellsOwners')}
          checked={values.tellsOwners}
          onChange={(event) => change({ tellsOwners: event.currentTarget.checked })}
          disabled={!mayChange}
        />
      </Paper>
      {mayChange && (
        <Group justify="space-between" align="flex-end">
          <DraftBar draft={draft} isInvalid={!isComplete(values)} />
          <Button variant="subtle" onClick={() => ask(true)}>
            {t('defaults')}
          </Button>
        </Group>
      )}
      <ConfirmOver
        opened={isAsking}
        onClose={() => ask(false)}
        title={t('defaultsTitle')}
        action={t('defaults')}
        onConfirm={async () => {
          const saved = await writeRules({}, current.tag);
          draft.reset();
          client.setQueryData(rulesKey, saved);
        }}
        now={current.data}
        readAgain={() => client.invalidateQueries({ queryKey: rulesKey })}
      >
        <Text size="sm">{t('defaultsDetail')}</Text>
      </ConfirmOver>
    </Stack>
  );
}

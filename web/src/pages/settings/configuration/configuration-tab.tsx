import { Alert, Button, Checkbox, Group, List, Stack, Text, Title } from '@mantine/core';
import { TbCheck } from 'react-icons/tb';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { answerAndTagOf, answerOf, api } from '../../../api/client.ts';
import { isProblem } from '../../../api/problem.ts';
import { BusyButton } from '../../../parts/busy-button.tsx';
import { Confirm } from '../../../parts/confirm.tsx';
import { CopyButton } from '../../../parts/copy-button.tsx';
import { ProblemAlert } from '../../../parts/problem-alert.tsx';
import { useMay } from '../../../shell/session.tsx';
import { keepAsStored, useConfigurationDraft, type ConfigurationDraft } from './draft.ts';
import { countOf, PlanView } from './plan-view.tsx';
import { References } from './references.tsx';
import { Remarks } from './remarks.tsx';
import { TextArea, type TextAreaHandle } from './text-area.tsx';
import { useConfigurationTexts } from './texts.ts';

const bodyOf = ({ text, env, file }: ConfigurationDraft) => ({ text, values: { env, file } });

/** The configuration as a text: load, edit, see what would change, apply. */
export default function ConfigurationTab() {
  const t = useConfigurationTexts();
  const client = useQueryClient();
  const mayApply = useMay('administrator');
  const [draft, change] = useConfigurationDraft();
  const [asked, ask] = useState<'load' | 'apply'>();
  const area = useRef<TextAreaHandle>(null);

  const plan = useMutation({
    mutationFn: async (given: ConfigurationDraft) => {
      const query = { prune: given.isPruning ? ('true' as const) : ('false' as const) };
      const answer = api.POST('/admin/v1/configuration/text/plan', { params: { query }, body: bodyOf(given) });
      return { ...(await answerAndTagOf(answer)), of: given };
    },
  });
  const planned = plan.data;
  const changes = planned?.data.plan?.changes ?? [];
  const removals = changes.filter(({ action }) => action === 'remove');
  const isStale = planned !== undefined && planned.of !== draft;
  const apply = useMutation({
    mutationFn: (given: ConfigurationDraft) => {
      const query = {
        prune: given.isPruning ? ('true' as const) : ('false' as const),
        ...(removals.length > 0 && { confirm: removals.length }),
      };
      const header = planned?.tag === undefined ? {} : { 'If-Match': planned.tag };
      return answerOf(
        api.POST('/admin/v1/configuration/text/apply', { params: { query, header }, body: bodyOf(given) }),
      );
    },
    // Anything may be another than before.
    onSuccess: (_, given) => {
      keepAsStored(given);
      plan.reset();
      return client.invalidateQueries();
    },
  });
  const look = () => {
    apply.reset();
    plan.mutate(draft);
  };
  const load = async () => {
    const { text } = await answerOf(api.GET('/admin/v1/configuration/text'));
    plan.reset();
    apply.reset();
    keepAsStored({ text });
    change({ text });
  };
  const loading = useMutation({ mutationFn: load });
  const goTo = (line: number, column: number) => area.current?.goTo(line, column);
  const problems = planned?.data.problems ?? [];

  return (
    <Stack gap="md">
      <Text size="sm" c="dimmed" maw={720}>
        {t('about')}
      </Text>
      <Group gap="xs">
        <BusyButton
          variant="default"
          onClick={() => (draft.text === '' ? loading.mutate() : ask('load'))}
          isBusy={loading.isPending}
        >
          {t('load')}
        </BusyButton>
        {draft.text !== '' && <CopyButton value={draft.text} label={t('copy')} />}
      </Group>
      {loading.error && <ProblemAlert error={loading.error} />}
      <TextArea
        label={t('text')}
        value={draft.text}
        onChange={(text) => change({ text })}
        markedLines={new Set(isStale ? [] : problems.map(({ line }) => line))}
        isReadOnly={!mayApply}
        handle={area}
      />
      {!mayApply ? (
        <Text size="sm" c="dimmed">
          {t('onlyAdministrators')}
        </Text>
      ) : (
        <>
          <Checkbox
            label={t('prune')}
            description={t('pruneHint')}
            checked={draft.isPruning}
            onChange={(event) => change({ isPruning: event.currentTarget.checked })}
          />
          <Group gap="xs">
            <BusyButton
              variant={planned && !isStale ? 'default' : 'filled'}
              onClick={look}
              isBusy={plan.isPending}
              disabled={draft.text.trim() === ''}
            >
              {t('plan')}
            </BusyButton>
            {planned?.data.plan && changes.length > 0 && (
              <Button onClick={() => ask('apply')} disabled={isStale} color={removals.length > 0 ? 'red' : undefined}>
                {t('apply')}
              </Button>
            )}
          </Group>
          {draft.text.trim() === '' && (
            <Text size="sm" c="dimmed">
              {t('empty')}
            </Text>
          )}
        </>
      )}
      {plan.error && <ProblemAlert error={plan.error} onRetry={look} />}
      {apply.isSuccess && (
        <Alert color="green" variant="light" icon={<TbCheck aria-hidden />} role="status">
          {t('applied')}
        </Alert>
      )}
      {planned && (
        <>
          <Remarks title={t('problems', { count: problems.length })} remarks={problems} isProblem onGoTo={goTo} />
          <Remarks title={t('notes')} remarks={planned.data.notes} isProblem={false} onGoTo={goTo} />
          <References references={planned.data.references} draft={draft} onChange={change} />
          {planned.data.plan && (
            <section aria-label={t('planned')}>
              <Title order={2} mb="sm">
                {t('planned')}
              </Title>
              {isStale && (
                <Alert color="yellow" mb="sm">
                  {t('stale')}
                </Alert>
              )}
              <PlanView plan={planned.data.plan} />
            </section>
          )}
        </>
      )}
      <Confirm
        opened={asked === 'load'}
        onClose={() => ask(undefined)}
        title={t('loadTitle')}
        action={t('load')}
        onConfirm={() => loading.mutateAsync()}
      >
        {t('loadDetail')}
      </Confirm>
      <Confirm
        opened={asked === 'apply' && planned?.data.plan !== undefined}
        onClose={() => ask(undefined)}
        title={t('applyTitle', { count: changes.length })}
        action={t('apply')}
        isDangerous={removals.length > 0}
        {...(removals.length > 0 && { word: String(removals.length) })}
        onConfirm={() => apply.mutateAsync(draft)}
      >
        <Stack gap="xs">
          <Text size="sm">{t('applyDetail')}</Text>
          {isProblem(apply.error, 'changed-meanwhile') && <Text size="sm">{t('changedMeanwhile')}</Text>}
          {removals.length > 0 && (
            <>
              <Text size="sm" fw={600}>
                {t('removes', { count: planned?.data.plan ? countOf(planned.data.plan, 'remove') : 0 })}
              </Text>
              <List size="sm" className="anywhere">
                {removals.map(({ section, key, about }) => (
                  <List.Item key={`${section} ${key}`}>
                    {t(section)} {key} {about !== null && `(${about})`}
                  </List.Item>
                ))}
              </List>
            </>
          )}
        </Stack>
      </Confirm>
    </Stack>
  );
}

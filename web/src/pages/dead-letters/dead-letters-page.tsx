import { Alert, Button, Group, Paper, Skeleton, Stack, Text } from '@mantine/core';
import { TbInfoCircle, TbMailOff, TbRefresh } from 'react-icons/tb';
import { useState } from 'react';
import { useFormat } from '../../i18n/format.ts';
import { EmptyState } from '../../parts/empty-state.tsx';
import { FoundStatus } from '../../parts/found-status.tsx';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { allOf, useUrlState } from '../../parts/url-state.ts';
import { useWrongTimes } from '../../parts/use-wrong-times.ts';
import { ActDialog, type Act } from '../../selection/act-dialog.tsx';
import { criteriaOf, idOfGroup, selectionOf } from '../../selection/selection.ts';
import { useMay } from '../../shell/session.tsx';
import { ChoiceBar } from './choice-bar.tsx';
import { noChoice, useChoice } from './choice.ts';
import { Filters, noFilters, othersOf } from './filters.tsx';
import { ReceiverSection } from './receiver-section.tsx';
import classes from './dead-letters.module.css';
import { receiversOf } from './receivers.ts';
import { useDeadLettersTexts } from './texts.ts';
import { useDeadLetters, type DeadLetters, type DeadLetterGroup } from './use-dead-letters.ts';

/** Deliveries that failed, by receiver and error, and the actions on them. */
export function DeadLettersPage() {
  const t = useDeadLettersTexts();
  const [state, set] = useUrlState();
  const criteria = criteriaOf(state);
  const isNarrowed = Object.keys(noFilters).some((name) => state[name] !== undefined);
  const times = useWrongTimes();
  const found = useDeadLetters(criteria, othersOf(state));
  const choice = useChoice();
  const may = useMay('operator');
  const [act, setAct] = useState<Act>();
  // Of another filter, until those of this one are found. That there was nothing says nothing of this one.
  const isOfBefore = found.isPlaceholderData;
  const data = isOfBefore && found.data?.groups.length === 0 ? undefined : found.data;
  const open = new Set(allOf(state['open']));
  const toggle = (group: DeadLetterGroup) => {
    const id = idOfGroup(group);
    if (!open.delete(id)) open.add(id);
    set({ open: [...open] });
  };
  const whole = selectionOf(criteria);
  const isEmpty = data?.groups.length === 0;
  // The list that is shown, and that an action would change, is not yet the one for the time that is being typed.
  const isOther = isOfBefore || times.isWrong;
  const none = t(data?.isComplete === false ? 'cut' : isNarrowed ? 'noneFound' : 'none');
  const mayAct = may && data !== undefined && !isEmpty && !isOther;
  const clear = () => {
    times.empty();
    set({ ...noFilters, ...noChoice });
  };
  return (
    <>
      <PageHeader title={t('title')} description={data && !isEmpty ? <Totals found={data} /> : t('description')}>
        <Button
          leftSection={<TbRefresh size={16} aria-hidden />}
          disabled={!mayAct}
          onClick={() => setAct({ kind: 'replay', selection: whole })}
        >
          {t('sendAll')}
        </Button>
        <Button
          variant="default"
          leftSection={<TbMailOff size={16} aria-hidden />}
          disabled={!mayAct}
          onClick={() => setAct({ kind: 'close', selection: whole })}
        >
          {t('closeAll')}
        </Button>
      </PageHeader>
      <Filters criteria={criteria} isNarrowed={isNarrowed} times={times} onClear={clear} />
      <FoundStatus count={isOther ? undefined : data?.count} isMore={data && !data.isComplete} none={none} />
      {found.isError && <ProblemAlert error={found.error} onRetry={() => void found.refetch()} />}
      {!data && !found.isError && <Loading />}
      {data && !data.isComplete && <Cut found={data} />}
      {isEmpty && data?.isComplete && (
        <EmptyState
          title={none}
          action={
            isNarrowed && (
              <Button variant="default" onClick={clear}>
                {t('clearFilters')}
              </Button>
            )
          }
        >
          {isNarrowed ? t('noneFoundText') : t('noneText')}
        </EmptyState>
      )}
      <Stack gap="sm" aria-busy={isOfBefore} inert={times.isWrong} className={isOther ? classes.ofBefore : undefined}>
        {receiversOf(data?.groups ?? []).map((receiver) => (
          <ReceiverSection
            key={receiver.subscriptionId}
            receiver={receiver}
            criteria={criteria}
            choice={choice}
            isOpen={(group) => open.has(idOfGroup(group))}
            onToggle={toggle}
            onAct={setAct}
          />
        ))}
      </Stack>
      {data && <LeftOut found={data} />}
      {!times.isWrong && <ChoiceBar choice={choice} criteria={criteria} groups={data?.groups ?? []} onAct={setAct} />}
      <ActDialog act={act} onClose={() => setAct(undefined)} />
    </>
  );
}

function Totals({ found }: { found: DeadLetters }) {
  const t = useDeadLettersTexts();
  const format = useFormat();
  const { count, isComplete, asOf } = found;
  // An api process of the version before, beside which this console may run for a moment, does not say how many.
  const { subscriptions }: { subscriptions?: number } = found;
  const shown = (number: number) =>
    isComplete ? format.number(number) : t('atLeast', { shown: format.number(number) });
  return (
    <>
      {t('count', { count, shown: shown(count) })}
      {subscriptions !== undefined &&
        ` ${t('ofReceivers', { count: subscriptions, shown: shown(subscriptions) })}`},{' '}
      {t('asOf', { at: format.clock(asOf) })}
    </>
  );
}

function Cut({ found: { searchedTo } }: { found: DeadLetters }) {
  const t = useDeadLettersTexts();
  const format = useFormat();
  return (
    <Alert color="blue" variant="light" mb="md" icon={<TbInfoCircle aria-hidden />}>
      {t('cut')} {searchedTo !== null && t('cutTo', { since: format.time(searchedTo) })}
    </Alert>
  );
}

function LeftOut({ found: { groupsLeftOut: count } }: { found: DeadLetters }) {
  const t = useDeadLettersTexts();
  const format = useFormat();
  if (count === 0) return null;
  return (
    <Text size="sm" c="dimmed" mt="sm">
      {t('leftOut', { count, shown: format.number(count) })}
    </Text>
  );
}

function Loading() {
  return (
    <Stack gap="sm" aria-hidden>
      {[0, 1, 2].map((nr) => (
        <Paper withBorder p="sm" key={nr}>
          <Group h={26}>
            <Skeleton height={14} w="40%" />
          </Group>
          <Group h={56}>
            <Skeleton height={14} w="75%" />
          </Group>
        </Paper>
      ))}
    </Stack>
  );
}

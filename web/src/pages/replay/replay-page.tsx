import { Group, Paper, SimpleGrid, Skeleton, Stack, Title } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, type ReactNode } from 'react';
import { ButtonLink } from '../../parts/links.tsx';
import { answerOf, api } from '../../api/client.ts';
import { isProblem } from '../../api/problem.ts';
import { useFormat } from '../../i18n/format.ts';
import { EmptyState } from '../../parts/empty-state.tsx';
import { readListsAnew } from '../../parts/found-lists.ts';
import { useIdInAddress } from '../../parts/id-in-address.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { ExactTime } from '../../parts/relative-time.tsx';
import { Facts, SelectionSummary } from '../../selection/selection-summary.tsx';
import type { Replay } from '../../selection/selection.ts';
import { isUnfinished, useWorkTexts, WorkStateBadge } from '../../selection/work.tsx';
import { Commands } from './commands.tsx';
import { Outcome } from './outcome.tsx';
import { ProgressPanel } from './progress-panel.tsx';
import { useReplayTexts } from './texts.ts';

const [oftenMs, seldomMs] = [1_000, 15_000];

/** How far one replay is, and what came of it. */
export function ReplayPage() {
  const t = useReplayTexts();
  const kindName = useWorkTexts();
  const id = useIdInAddress();
  const found = useQuery({
    queryKey: ['replay', id],
    queryFn: ({ signal }) => answerOf(api.GET('/admin/v1/replays/{id}', { params: { path: { id } }, signal })),
    refetchInterval: ({ state: { data, error } }) =>
      isProblem(error) && error.status === 404 ? false : data && isUnfinished(data) ? oftenMs : seldomMs,
  });
  const work = found.data;
  const isOver = work !== undefined && !isUnfinished(work);
  const client = useQueryClient();
  // The replay has changed what lists show: they are read again when the replay is over, or somebody leaves this page
  // before.
  useEffect(() => {
    if (isOver) return undefined;
    return () => {
      readListsAnew(client);
      void client.invalidateQueries({ queryKey: ['dead-letters'] });
    };
  }, [isOver, client]);
  if (isProblem(found.error) && found.error.status === 404)
    return (
      <>
        <PageHeader title={t('gone')} />
        <EmptyState
          title={t('gone')}
          action={
            <ButtonLink variant="default" to="/replays">
              {t('toList')}
            </ButtonLink>
          }
        >
          {t('goneText')}
        </EmptyState>
      </>
    );
  return (
    <>
      <PageHeader
        title={work ? kindName(work.kind) : '…'}
        description={work ? <Created work={work} /> : <Skeleton height={14} w={260} mt={6} />}
      >
        {work && isUnfinished(work) && <Commands work={work} />}
      </PageHeader>
      {found.isError && <ProblemAlert error={found.error} onRetry={() => void found.refetch()} />}
      <Stack gap="md">
        <ProgressPanel work={work} updatedAt={found.dataUpdatedAt} />
        {work && (
          <SimpleGrid cols={{ base: 1, md: 2 }}>
            <Outcome work={work} />
            <Details work={work} />
          </SimpleGrid>
        )}
      </Stack>
    </>
  );
}

function Created({ work }: { work: Replay }) {
  const t = useReplayTexts();
  const format = useFormat();
  return (
    <Group gap="xs">
      <WorkStateBadge state={work.state} />
      <span>{t('created', { at: format.time(work.createdAt), by: work.createdBy ?? t('nobody') })}</span>
    </Group>
  );
}

function Details({ work }: { work: Replay }) {
  const t = useReplayTexts();
  const format = useFormat();
  const counted = format.number(work.count);
  const rows: [string, ReactNode][] = [
    [t('counted'), work.isCountComplete ? counted : t('leftAtLeast', { count: counted })],
    ...(work.kind === 'replay'
      ? [
          [
            t('rate'),
            work.ratePerSecond === null
              ? t('unlimited')
              : t('perSecond', { rate: t('atMost', { rate: format.number(work.ratePerSecond) }) }),
          ] as [string, ReactNode],
        ]
      : []),
    ...(work.startAt ? [[t('start'), format.time(work.startAt)] as [string, ReactNode]] : []),
    ...(work.stopAt ? [[t('stop'), format.time(work.stopAt)] as [string, ReactNode]] : []),
    [t('started'), work.startedAt === null ? '–' : <ExactTime at={work.startedAt} />],
    ...(isUnfinished(work) && work.startedAt
      ? [[t('searched'), `${format.time(work.searchedTo)} (${t('searchedHint')})`] as [string, ReactNode]]
      : []),
    ...(work.note === null ? [] : [[t('note'), work.note] as [string, ReactNode]]),
  ];
  return (
    <Paper withBorder p="md">
      <Stack gap="sm">
        <Title order={2}>{t('details')}</Title>
        <SelectionSummary selection={work.selection} />
        <Facts rows={rows} />
      </Stack>
    </Paper>
  );
}

import { Button, Group, Select, Stack, Text } from '@mantine/core';
import { TbBan, TbPlus } from 'react-icons/tb';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { AnchorLink, ButtonLink } from '../../parts/links.tsx';
import { answerOf, api } from '../../api/client.ts';
import { namedWithChosen } from '../../parts/chosen-options.ts';
import { EmptyState } from '../../parts/empty-state.tsx';
import { FoldedFilters } from '../../parts/folded-filters.tsx';
import { FoundStatus } from '../../parts/found-status.tsx';
import { ListTable, type Column } from '../../parts/list-table.tsx';
import { readOn, tryAgain } from '../../parts/next-page.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { RelativeTime } from '../../parts/relative-time.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import type { Replay } from '../../selection/selection.ts';
import { useShortSelection } from '../../selection/short-selection.ts';
import {
  nameOfState,
  useProgressText,
  useWorkTexts,
  workKinds,
  WorkProgress,
  workStates,
  WorkStateBadge,
} from '../../selection/work.tsx';
import { useMay } from '../../shell/session.tsx';
import { useReplaysTexts } from './texts.ts';

const perPage = 100;
/** While one of those shown goes on, and otherwise; all pages that were read are read again. */
const [oftenMs, seldomMs] = [2_000, 15_000];

const isMoving = ({ state }: Replay): boolean => state === 'running' || state === 'scheduled';

/** Actions on many deliveries at once, and how far they are. */
export function ReplaysPage() {
  const t = useReplaysTexts();
  const work = useWorkTexts();
  const navigate = useNavigate();
  const may = useMay('operator');
  const [address, set] = useUrlState();
  // A text that is none of these is refused.
  const kind = oneOf(address['kind']) as Replay['kind'] | undefined;
  const state = oneOf(address['state']) as Replay['state'] | undefined;
  const list = useInfiniteQuery({
    queryKey: ['replays', kind, state],
    queryFn: ({ signal, pageParam }) =>
      answerOf(
        api.GET('/admin/v1/replays', { params: { query: { kind, state, limit: perPage, cursor: pageParam } }, signal }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: ({ state: { data } }) =>
      data?.pages.length === 1 && data.pages[0]!.replays.some(isMoving) ? oftenMs : seldomMs,
  });
  const rows = list.data?.pages.flatMap(({ replays }) => replays) ?? [];
  const isNarrowed = kind !== undefined || state !== undefined;
  const none = t(isNarrowed ? 'noneFound' : 'none');
  const columns: Column<Replay>[] = [
    {
      key: 'what',
      header: t('what'),
      width: 'minmax(170px, 2fr)',
      render: (row) => (
        <div>
          <AnchorLink size="sm" to="/replays/$id" params={{ id: row.id }}>
            {work(row.kind)}
          </AnchorLink>
          <Meant {...row} />
        </div>
      ),
    },
    { key: 'state', header: t('state'), width: '116px', render: (row) => <WorkStateBadge state={row.state} /> },
    {
      key: 'progress',
      header: t('progress'),
      width: 'minmax(130px, 1fr)',
      isWide: true,
      render: (row) => <ProgressCell work={row} />,
    },
    {
      key: 'created',
      header: t('created'),
      width: '116px',
      isWide: true,
      render: (row) => <RelativeTime at={row.createdAt} />,
    },
    { key: 'by', header: t('by'), width: 'minmax(80px, 130px)', isWide: true, render: (row) => row.createdBy ?? '–' },
  ];
  return (
    <>
      <PageHeader title={t('title')} description={t('description')}>
        <ButtonLink
          variant="default"
          leftSection={<TbBan size={16} aria-hidden />}
          disabled={!may}
          to="/replays/new"
          search={{ what: 'unfinished' }}
        >
          {t('cancelUnfinished')}
        </ButtonLink>
        <ButtonLink leftSection={<TbPlus size={16} aria-hidden />} disabled={!may} to="/replays/new">
          {t('create')}
        </ButtonLink>
      </PageHeader>
      <FoldedFilters chosen={Number(kind !== undefined) + Number(state !== undefined)}>
        <Group gap="sm" mb="md">
          <Select
            label={t('kind')}
            placeholder={t('anyKind')}
            clearable
            data={namedWithChosen(workKinds, work, kind === undefined ? [] : [kind])}
            value={kind ?? null}
            onChange={(next) => set({ kind: next ?? undefined })}
          />
          <Select
            label={t('state')}
            placeholder={t('anyState')}
            clearable
            data={namedWithChosen(workStates, (each) => work(nameOfState(each)), state === undefined ? [] : [state])}
            value={state ?? null}
            onChange={(next) => set({ state: next ?? undefined })}
          />
        </Group>
      </FoldedFilters>
      <FoundStatus count={list.data && rows.length} isMore={list.hasNextPage} none={none} />
      {list.isError && <ProblemAlert error={list.error} onRetry={tryAgain(list)} />}
      {list.data && rows.length === 0 ? (
        <EmptyState
          title={none}
          action={
            isNarrowed ? (
              <Button variant="default" onClick={() => set({ kind: undefined, state: undefined })}>
                {t('clear')}
              </Button>
            ) : (
              <ButtonLink variant="default" to="/dead-letters">
                {t('toDeadLetters')}
              </ButtonLink>
            )
          }
        >
          {isNarrowed ? t('noneFoundText') : t('noneText')}
        </EmptyState>
      ) : (
        (list.data || list.isPending) && (
          <ListTable
            label={t('list')}
            columns={columns}
            rows={rows}
            keyOf={({ id }) => id}
            onOpen={({ id }) => void navigate({ to: '/replays/$id', params: { id } })}
            onEnd={readOn(list)}
            isLoading={list.isPending || list.isFetchingNextPage}
            rowHeight={56}
          />
        )
      )}
    </>
  );
}

function Meant({ selection }: Replay) {
  const short = useShortSelection(selection);
  return (
    <Text size="xs" c="dimmed" truncate title={short}>
      {short}
    </Text>
  );
}

function ProgressCell({ work }: { work: Replay }) {
  const text = useProgressText(work);
  return (
    <Stack gap={4}>
      <Text size="xs">{text}</Text>
      <WorkProgress work={work} size="sm" />
    </Stack>
  );
}

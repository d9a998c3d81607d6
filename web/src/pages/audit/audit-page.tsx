import { Anchor, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useNames } from '../../parts/names.ts';
import { AsOf } from '../../parts/as-of.tsx';
import { BusyButton } from '../../parts/busy-button.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { FoundStatus } from '../../parts/found-status.tsx';
import { ListTable, type Column } from '../../parts/list-table.tsx';
import { readNow, readOn, tryAgain, whileOnePage } from '../../parts/next-page.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { RelativeTime } from '../../parts/relative-time.tsx';
import { SubjectLink } from '../../parts/subject-link.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { placeOf, readEntries, type Entry } from './entries.ts';
import { EntryDrawer } from './entry-drawer.tsx';
import { EntryFilters, useEntryFilter } from './entry-filters.tsx';
import { useAuditTexts } from './texts.ts';

export function AuditPage() {
  const t = useAuditTexts();
  const [state, set] = useUrlState();
  const filter = useEntryFilter();
  const nameOf = useNames();
  const query = useInfiniteQuery({
    queryKey: ['audit', filter],
    queryFn: ({ pageParam, signal }) => readNow(readEntries(filter, pageParam, signal)),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: whileOnePage(({ entries }) => entries),
  });
  const rows = query.data?.pages.flatMap(({ entries }) => entries) ?? [];
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  const selected = oneOf(state['entry']);

  const changedOf = ({ before, after, changedSecrets }: Entry) =>
    [
      ...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]),
      ...changedSecrets.map((name) => t('secret', { name })),
    ].join(', ');

  const none = t(query.hasNextPage ? 'searching' : isFiltered ? 'noneFiltered' : 'none');

  const columns: Column<Entry>[] = [
    { key: 'at', header: t('at'), width: 'minmax(92px, 156px)', render: ({ at }) => <RelativeTime at={at} /> },
    {
      key: 'action',
      header: t('action'),
      width: 'minmax(130px, 1fr)',
      render: (entry) => (
        <Anchor component={Link} to="." search={{ ...state, entry: placeOf(entry) } as never} size="sm" fw={500}>
          {entry.action}
        </Anchor>
      ),
    },
    {
      key: 'subject',
      header: t('subject'),
      width: 'minmax(60px, 1.3fr)',
      render: ({ subject }) => <SubjectLink subject={subject} name={nameOf(subject)} />,
    },
    {
      key: 'who',
      header: t('who'),
      width: 'minmax(90px, 0.8fr)',
      isWide: true,
      render: ({ client }) =>
        client ?? (
          <Text span size="sm" fs="italic" c="dimmed">
            {t('system')}
          </Text>
        ),
    },
    { key: 'changed', header: t('changed'), width: 'minmax(120px, 1.4fr)', isWide: true, render: changedOf },
  ];

  return (
    <>
      <PageHeader title={t('title')} description={t('description')} />
      <EntryFilters />
      <AsOf at={query.data?.pages[0]?.readAt} onAgain={() => void query.refetch()} />
      <FoundStatus count={query.data && rows.length} isMore={query.hasNextPage} none={none} />
      {query.error && <ProblemAlert error={query.error} onRetry={tryAgain(query)} />}
      {query.data && rows.length === 0 ? (
        query.hasNextPage ? (
          <EmptyState
            title={none}
            action={
              <BusyButton
                variant="default"
                isBusy={query.isFetchingNextPage}
                onClick={() => {
                  if (!query.isFetching) void query.fetchNextPage();
                }}
              >
                {t('searchOn')}
              </BusyButton>
            }
          />
        ) : (
          <EmptyState title={none} />
        )
      ) : (
        <ListTable
          label={t('title')}
          columns={columns}
          rows={rows}
          keyOf={placeOf}
          onOpen={(entry) => set({ entry: placeOf(entry) }, true)}
          onEnd={readOn(query)}
          isLoading={query.isPending || query.isFetchingNextPage}
          isMarked={(entry) => placeOf(entry) === selected}
          height="calc(100dvh - 340px)"
        />
      )}
      <EntryDrawer place={selected} listed={rows} onClose={() => set({ entry: undefined })} />
    </>
  );
}

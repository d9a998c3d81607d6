import { Button, Group, Text, VisuallyHidden } from '@mantine/core';
import { TbArrowUp, TbBan } from 'react-icons/tb';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useRef } from 'react';
import { BusyButton } from '../../parts/busy-button.tsx';
import { ButtonLink } from '../../parts/links.tsx';
import { useFormat } from '../../i18n/format.ts';
import { EmptyState } from '../../parts/empty-state.tsx';
import { FoundStatus, useTold } from '../../parts/found-status.tsx';
import { ListTable } from '../../parts/list-table.tsx';
import { tryAgain } from '../../parts/next-page.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { columnsFor } from './columns.tsx';
import { useMay } from '../../shell/session.tsx';
import { filtersOf, queryOf, unfinishedOf } from './criteria.ts';
import { FilterBar, type FilterBarHandle } from './filter-bar.tsx';
import { useFoundNotifications, useNewer } from './found-notifications.ts';
import { QuickSearches } from './quick-searches.tsx';
import { useSearchTexts } from './search-texts.ts';

export function NotificationsPage() {
  const t = useSearchTexts();
  const format = useFormat();
  const navigate = useNavigate();
  const [state] = useUrlState();
  const query = queryOf(state);
  const { rows, found, searchedTo, asOf, onEnd, restart } = useFoundNotifications(query);
  const newer = useNewer(query, found.data);
  const newerText = newer.isMore ? t('newerMany', { count: newer.count }) : t('newer', { count: newer.count });
  const columns = useMemo(() => columnsFor(t), [t]);
  const isFiltered = filtersOf(state).length > 0;
  const bar = useRef<FilterBarHandle>(null);
  const may = useMay('operator');
  const unfinished = may ? unfinishedOf(state) : undefined;
  const isEmpty = found.isSuccess && rows.length === 0;
  const isDone = found.isSuccess && !found.hasNextPage;
  const none = searchedTo ? t('notFoundYet', { time: format.time(searchedTo) }) : t(isFiltered ? 'notFound' : 'none');
  const searchOn = (
    <BusyButton
      size="compact-sm"
      variant="default"
      isBusy={found.isFetchingNextPage}
      onClick={() => void found.fetchNextPage()}
    >
      {t('goOn')}
    </BusyButton>
  );

  return (
    <>
      <PageHeader title={t('title')} description={t('description')}>
        <VisuallyHidden role="status">{useTold(newer.count > 0 ? newerText : '')}</VisuallyHidden>
        {newer.count > 0 && (
          <Button
            size="compact-md"
            variant="light"
            leftSection={<TbArrowUp size={14} aria-hidden />}
            onClick={() => void restart()}
          >
            {newerText} · {t('show')}
          </Button>
        )}
        {unfinished && (
          <ButtonLink
            variant="default"
            leftSection={<TbBan size={16} aria-hidden />}
            to="/replays/new"
            search={unfinished}
          >
            {t('cancelUnfinished')}
          </ButtonLink>
        )}
      </PageHeader>
      <FilterBar handle={bar} />
      {!isFiltered && <QuickSearches onGone={() => bar.current?.focus()} />}
      <FoundStatus count={found.data && rows.length} isMore={found.hasNextPage} none={none} />
      {found.error && <ProblemAlert error={found.error} onRetry={tryAgain(found)} />}
      {!found.error && newer.error && <ProblemAlert error={newer.error} onRetry={newer.again} />}
      {isEmpty && (
        <EmptyState
          title={none}
          action={
            searchedTo ? searchOn : isFiltered ? undefined : <ButtonLink to="/publish">{t('publish')}</ButtonLink>
          }
        >
          {isFiltered ? t('notFoundDetail') : t('noneDetail')}
        </EmptyState>
      )}
      {!isEmpty && (!found.error || rows.length > 0) && (
        <ListTable
          label={t('list')}
          columns={columns}
          rows={rows}
          keyOf={({ id }) => id}
          onOpen={({ id }) => void navigate({ to: '/notifications/$id', params: { id } })}
          onEnd={onEnd}
          isLoading={found.isFetching}
          height="calc(100dvh - 300px)"
        />
      )}
      {asOf !== undefined && (
        <Group gap="sm" mt="xs">
          {rows.length > 0 && (
            <Text size="sm" c="dimmed">
              {searchedTo
                ? t('searchedTo', { time: format.time(searchedTo), shown: format.number(rows.length) })
                : t(isDone ? 'foundAll' : 'found', { shown: format.number(rows.length) })}
            </Text>
          )}
          {rows.length > 0 && searchedTo && searchOn}
          <Text size="sm" c="dimmed">
            {t('asOf', { at: format.asOf(asOf) })}
          </Text>
          <Button size="compact-sm" variant="subtle" onClick={() => void restart()}>
            {t('readAgain')}
          </Button>
        </Group>
      )}
    </>
  );
}

import { Anchor, Button, Group, Select } from '@mantine/core';
import { TbX } from 'react-icons/tb';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useFormat } from '../../i18n/format.ts';
import { AsOf } from '../../parts/as-of.tsx';
import { namedWithChosen } from '../../parts/chosen-options.ts';
import { EmptyState } from '../../parts/empty-state.tsx';
import { FoundStatus } from '../../parts/found-status.tsx';
import { InEnglish } from '../../parts/in-english.tsx';
import { ListTable, type Column } from '../../parts/list-table.tsx';
import { readNow, readOn, tryAgain, whileOnePage } from '../../parts/next-page.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { RelativeTime } from '../../parts/relative-time.tsx';
import { SubjectLink } from '../../parts/subject-link.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { AlertDrawer } from './alert-drawer.tsx';
import { readAlerts, ruleNames, type Alert, type RuleName } from './alerts.ts';
import { useAlertTexts } from './texts.ts';

/** The alerts that are over, newest first. */
export function PastAlerts() {
  const t = useAlertTexts();
  const format = useFormat();
  const [state, set] = useUrlState();
  // A text that is no rule is refused, and so is a subject without one.
  const rule = oneOf(state['rule']) as RuleName | undefined;
  const subject = oneOf(state['subject']);
  const query = useInfiniteQuery({
    queryKey: ['alerts', 'resolved', rule, subject],
    queryFn: ({ pageParam, signal }) => readNow(readAlerts('resolved', { rule, subject }, pageParam, signal)),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: whileOnePage(({ alerts }) => alerts),
  });
  const rows = query.data?.pages.flatMap(({ alerts }) => alerts) ?? [];
  const none = t(rule === undefined ? 'nothingPast' : 'nothingPastFiltered');
  const opened = oneOf(state['alert']);

  const columns: Column<Alert>[] = [
    {
      key: 'rule',
      header: t('rule'),
      width: 'minmax(120px, 1.4fr)',
      render: ({ id, rule: name }) => (
        <Anchor component={Link} to="." search={{ ...state, alert: id } as never} size="sm" fw={500}>
          {t(name)}
        </Anchor>
      ),
    },
    {
      key: 'subject',
      header: t('subject'),
      width: 'minmax(150px, 1.2fr)',
      isWide: true,
      render: (alert) => <SubjectLink subject={alert.subject} />,
    },
    {
      key: 'what',
      header: t('what'),
      width: 'minmax(160px, 1.6fr)',
      isWide: true,
      render: ({ what }) => <InEnglish>{what}</InEnglish>,
    },
    { key: 'since', header: t('since'), width: '156px', render: ({ since }) => <RelativeTime at={since} /> },
    {
      key: 'lasted',
      header: t('lasted'),
      width: '90px',
      align: 'right',
      render: ({ since, resolvedAt }) =>
        format.duration(Math.max(0, Date.parse(resolvedAt ?? since) - Date.parse(since))),
    },
    {
      key: 'told',
      header: t('told'),
      width: '156px',
      isWide: true,
      render: ({ toldAt }) => <RelativeTime at={toldAt} />,
    },
  ];

  return (
    <>
      <Group mb="sm" gap="sm">
        <Select
          aria-label={t('rule')}
          placeholder={t('allRules')}
          data={namedWithChosen(ruleNames, t, rule === undefined ? [] : [rule])}
          value={rule ?? null}
          onChange={(next) => set({ rule: next ?? undefined, subject: undefined })}
          clearable
          clearButtonProps={{ 'aria-label': t('allRules') }}
          w={{ base: '100%', xs: 260 }}
        />
        {subject !== undefined && (
          <Button
            variant="default"
            rightSection={<TbX size={14} aria-hidden />}
            onClick={() => set({ subject: undefined })}
            aria-label={`${t('onlySubject', { subject })}. ${t('allSubjects')}`}
            maw="100%"
          >
            {t('onlySubject', { subject })}
          </Button>
        )}
      </Group>
      <AsOf at={query.data?.pages[0]?.readAt} onAgain={() => void query.refetch()} />
      <FoundStatus count={query.data && rows.length} isMore={query.hasNextPage} none={none} />
      {query.error && <ProblemAlert error={query.error} onRetry={tryAgain(query)} />}
      {query.data && rows.length === 0 ? (
        <EmptyState title={none} />
      ) : (
        (query.data || query.isPending) && (
          <ListTable
            label={t('past')}
            columns={columns}
            rows={rows}
            keyOf={({ id }) => id}
            onOpen={({ id }) => set({ alert: id }, true)}
            onEnd={readOn(query)}
            isLoading={query.isPending || query.isFetchingNextPage}
            isMarked={({ id }) => id === opened}
          />
        )
      )}
      <AlertDrawer id={opened} listed={rows} onClose={() => set({ alert: undefined })} />
    </>
  );
}

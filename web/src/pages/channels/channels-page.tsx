import { Anchor, Button, Text } from '@mantine/core';
import { TbPlus } from 'react-icons/tb';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate } from '@tanstack/react-router';
import { useFormat } from '../../i18n/format.ts';
import { useTotals } from '../../parts/activity.ts';
import { channelsQuery } from '../../parts/catalogue.ts';
import type { Column } from '../../parts/list-table.tsx';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { RelativeTime } from '../../parts/relative-time.tsx';
import { SearchedList } from '../../parts/searched-list.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { useMay } from '../../shell/session.tsx';
import type { Channel } from './channels.ts';
import { NewChannel } from './new-channel.tsx';
import { useChannelTexts } from './texts.ts';

export function ChannelsPage() {
  const t = useChannelTexts();
  const format = useFormat();
  const [state, set] = useUrlState();
  const navigate = useNavigate();
  const mayAdd = useMay('administrator');
  const query = useQuery({ ...channelsQuery, staleTime: 0 });
  const totals = useTotals('channel');

  const count = (channel: Channel, of: 'accepted' | 'duplicates') => {
    const value = totals.of(channel.name)?.[of];
    return value === undefined ? '–' : format.number(value);
  };
  const rulesOf = ({ deduplication, maxAgeSeconds, bodyRetentionDays }: Channel) =>
    [
      deduplication && t('duplicateRule', { time: format.duration(deduplication.withinSeconds * 1000) }),
      maxAgeSeconds !== null && t('ageRule', { time: format.duration(maxAgeSeconds * 1000) }),
      bodyRetentionDays !== null && t('bodyRule', { count: bodyRetentionDays }),
    ]
      .filter(Boolean)
      .join(' · ');

  const columns: Column<Channel>[] = [
    {
      key: 'name',
      header: t('name'),
      width: 'minmax(140px, 1.4fr)',
      render: ({ id, name }) => (
        <Anchor component={Link} to="/channels/$id" params={{ id } as never} size="sm" fw={500}>
          {name}
        </Anchor>
      ),
    },
    {
      key: 'filters',
      header: t('filters'),
      width: 'minmax(120px, 1.2fr)',
      isWide: true,
      render: ({ filters }) =>
        filters.length === 0 ? (
          <Text span size="sm" c="dimmed" fs="italic">
            {t('anyFilter')}
          </Text>
        ) : (
          filters.join(', ')
        ),
    },
    {
      key: 'rules',
      header: t('rules'),
      width: 'minmax(140px, 2fr)',
      isWide: true,
      render: (channel) => rulesOf(channel) || t('noRules'),
    },
    {
      key: 'accepted',
      header: t('accepted'),
      width: '116px',
      align: 'right',
      render: (channel) => (
        <Anchor
          component={Link}
          to="/notifications"
          search={{ channel: channel.name, acceptedFrom: totals.since } as never}
          size="sm"
        >
          {count(channel, 'accepted')}
        </Anchor>
      ),
    },
    {
      key: 'duplicates',
      header: t('duplicates'),
      width: '116px',
      align: 'right',
      isWide: true,
      render: (channel) => count(channel, 'duplicates'),
    },
    {
      key: 'last',
      header: t('last'),
      width: '130px',
      isWide: true,
      render: ({ name }) => <RelativeTime at={totals.of(name)?.lastAt} />,
    },
  ];

  return (
    <>
      <PageHeader title={t('title')} description={t('description')}>
        {mayAdd && (
          <Button leftSection={<TbPlus size={16} aria-hidden />} onClick={() => set({ new: '1' }, true)}>
            {t('add')}
          </Button>
        )}
      </PageHeader>
      {totals.error && <ProblemAlert error={totals.error} onRetry={totals.again} />}
      <SearchedList
        query={query}
        textsOf={({ name }) => [name]}
        columns={columns}
        keyOf={({ id }) => id}
        onOpen={({ id }) => void navigate({ to: '/channels/$id', params: { id } })}
        t={t}
      />
      <NewChannel opened={mayAdd && oneOf(state['new']) !== undefined} onClose={() => set({ new: undefined })} />
    </>
  );
}

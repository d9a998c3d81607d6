import { Text } from '@mantine/core';
import { AnchorLink } from '../../parts/links.tsx';
import { DeliveryStateBadge, type DeliveryState } from '../../parts/delivery-state.tsx';
import type { Column } from '../../parts/list-table.tsx';
import { namesOf } from '../../parts/names-of.ts';
import { RelativeTime } from '../../parts/relative-time.tsx';
import classes from './filter-bar.module.css';
import type { ListedNotification } from './found-notifications.ts';
import type { SearchTexts } from './search-texts.ts';

/** The worst first: that is what somebody looks for. */
const inOrder = namesOf<DeliveryState>({
  failed: true,
  unknown: true,
  expired: true,
  held: true,
  waiting: true,
  sending: true,
  queued: true,
  cancelled: true,
  delivered: true,
});
/** Where the table is wide; otherwise there is room for one. */
const mostBadges = 2;
/** The API looks at the first so many deliveries of each notification: the states of the others are not known here. */
const mostCounted = 50;

function States({ deliveries, t }: { deliveries: ListedNotification['deliveries']; t: ReturnType<SearchTexts> }) {
  const states = inOrder.filter((state) => deliveries[state] !== undefined);
  if (states.length === 0)
    return (
      <Text span size="sm" c="dimmed">
        {t('nobody')}
      </Text>
    );
  const counted = states.reduce((sum, state) => sum + deliveries[state]!, 0);
  const more = (count: number, className: string | undefined) =>
    count > 0 && (
      <Text size="xs" lh={1} className={className}>
        {t('moreStates', { count })}
      </Text>
    );
  const badges = (
    <div className={classes.states}>
      {states.slice(0, mostBadges).map((state, index) => (
        <span key={state} className={index === 0 ? undefined : classes.wide}>
          <DeliveryStateBadge
            state={state}
            count={states.length === 1 && deliveries[state] === 1 ? undefined : deliveries[state]}
          />
        </span>
      ))}
      {more(states.length - mostBadges, classes.wide)}
      {more(states.length - 1, classes.narrow)}
    </div>
  );
  if (counted < mostCounted) return badges;
  return (
    <>
      {badges}
      <Text size="xs" lh={1} c="dimmed">
        {t('ofFirst', { most: mostCounted })}
      </Text>
    </>
  );
}

/** The columns of the list. A publisher wrote most of it: in any direction, and at any length. */
export const columnsFor = (t: ReturnType<SearchTexts>): Column<ListedNotification>[] => [
  {
    key: 'what',
    header: t('what'),
    width: 'minmax(120px, 1.3fr)',
    narrowWidth: 'minmax(80px, 1fr)',
    render: ({ id, action, resource, acceptedAt }) => (
      <>
        <AnchorLink to="/notifications/$id" params={{ id }} size="sm">
          <bdi>{action === null && resource === null ? t('noText') : `${action ?? ''} ${resource ?? ''}`}</bdi>
        </AnchorLink>
        <Text size="xs" c="dimmed" className={classes.narrow}>
          <RelativeTime at={acceptedAt} />
        </Text>
      </>
    ),
  },
  {
    key: 'channel',
    header: t('channel'),
    width: 'minmax(90px, 1fr)',
    isWide: true,
    render: ({ channel }) => <bdi>{channel}</bdi>,
  },
  {
    key: 'object',
    header: t('object'),
    width: 'minmax(140px, 2.2fr)',
    isWide: true,
    render: ({ mainObject }) => <bdi title={mainObject ?? undefined}>{mainObject ?? '–'}</bdi>,
  },
  {
    key: 'deliveries',
    header: t('deliveries'),
    width: 'minmax(128px, 210px)',
    narrowWidth: '152px',
    render: ({ deliveries }) => <States deliveries={deliveries} t={t} />,
  },
  {
    key: 'publisher',
    header: t('publisher'),
    width: 'minmax(90px, 0.8fr)',
    isWide: true,
    render: ({ publisher }) => <bdi>{publisher}</bdi>,
  },
  {
    key: 'accepted',
    header: t('accepted'),
    width: '156px',
    align: 'right',
    isWide: true,
    render: ({ acceptedAt }) => <RelativeTime at={acceptedAt} />,
  },
];

import { Badge, Group, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { errorPart } from '../../parts/call-error.tsx';
import { PartlyEnglish, withoutMarks } from '../../parts/in-english.tsx';
import { AnchorLink } from '../../parts/links.tsx';
import type { operations } from '../../../generated/admin-api.d.ts';
import type { Format } from '../../i18n/format.ts';
import { deliveryStates, DeliveryStateBadge, type DeliveryState } from '../../parts/delivery-state.tsx';
import type { Column } from '../../parts/list-table.tsx';
import { namedQuery } from '../../parts/subscriptions.ts';
import classes from '../notifications/filter-bar.module.css';
import type { TailRow } from './tail-buffer.ts';
import type { TailText } from './tail-texts.ts';

/** As the API has them: one that is new there does not compile here without its texts and its colour. */
export type EventKind = NonNullable<NonNullable<operations['event_stream']['parameters']['query']>['event']>;
/** Of the stream itself: it cannot be asked for alone. */
type ShownKind = EventKind | 'events.missed';

const colors: Record<ShownKind, string> = {
  'notification.accepted': 'heraut',
  'notification.duplicate': 'gray',
  'notification.expired': 'grape',
  'delivery.attempted': 'gray',
  'delivery.dead': 'red',
  'endpoint.opened': 'orange',
  'endpoint.closed': 'green',
  'subscription.disabled': 'red',
  'subscription.enabled': 'gray',
  'subscription.paused': 'gray',
  'subscription.resumed': 'gray',
  'events.missed': 'yellow',
};
const shownKinds = Object.keys(colors) as ShownKind[];
/** In the order in which they are shown. */
export const eventKinds = shownKinds.filter((kind) => kind !== 'events.missed');

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);
const stateOf = (row: TailRow): DeliveryState | undefined => deliveryStates.find((state) => state === row['state']);

/** Where a row leads: a link of the router, or nowhere. */
export function addressOf(row: TailRow): { to: string; params?: { id: string } } | undefined {
  const notification = textOf(row['notificationId']);
  if (notification) return { to: '/notifications/$id', params: { id: notification } };
  const subscription = textOf(row['subscriptionId']);
  if (subscription) return { to: '/subscriptions/$id', params: { id: subscription } };
  return row['address'] === undefined ? undefined : { to: '/endpoints' };
}

interface Needed {
  t: TailText;
  format: Format;
}

/** Only rows on the screen ask for names. */
function About({ row }: { row: TailRow }) {
  const address = textOf(row['address']);
  const id = address === undefined ? textOf(row['subscriptionId']) : undefined;
  const { data: subscription } = useQuery(namedQuery(id));
  const about =
    address ??
    [textOf(row['channel']), subscription?.callbackUrl ?? id].filter((part) => part !== undefined).join(' → ');
  return <bdi title={about}>{about}</bdi>;
}

/** As `PartlyEnglish` shows it. */
function outcomeOf(row: TailRow, { t, format }: Needed): string {
  const [reason, count, status] = [textOf(row['reason']), numberOf(row['count']), numberOf(row['status'])];
  const parts: (string | undefined)[] = (() => {
    switch (row.event) {
      case 'delivery.attempted': {
        const isPlain = reason === undefined || reason === `HTTP ${status}`;
        return [
          t('attempt', { number: numberOf(row['attempt']) ?? '?' }),
          status === undefined ? t('noAnswer') : `HTTP ${status}`,
          format.duration(numberOf(row['durationMs']) ?? 0),
          isPlain ? undefined : errorPart(reason),
        ];
      }
      case 'delivery.dead':
        return [count !== undefined && count > 1 ? t('several', { count }) : undefined, reason && errorPart(reason)];
      case 'endpoint.opened':
        return [t('failures', { count: numberOf(row['failures']) ?? 0, reason: reason && errorPart(reason) })];
      case 'endpoint.closed':
        return [t('after', { duration: format.duration(numberOf(row['openMs']) ?? 0) })];
      case 'events.missed':
        return [
          count === undefined ? t('missedUnknown') : t('missedSome', { count }),
          reason && ['too-fast', 'slow-reader', 'not-kept', 'not-recorded'].includes(reason)
            ? t(reason as 'too-fast')
            : undefined,
        ];
      default: {
        const deliveries = numberOf(row['deliveries']);
        const publisher = textOf(row['publisher']);
        return [
          deliveries === undefined
            ? undefined
            : deliveries === 0
              ? t('forNobody')
              : t('forSubscriptions', { count: deliveries }),
          publisher && t('by', { publisher }),
        ];
      }
    }
  })();
  return parts.filter((part) => part !== undefined && part !== '').join(' · ');
}

export function columnsFor(needed: Needed): Column<TailRow>[] {
  const { t, format } = needed;
  const time = ({ at }: TailRow) =>
    at !== undefined && (
      <time dateTime={at} title={format.time(at)}>
        {format.clock(at)}
      </time>
    );
  return [
    {
      key: 'time',
      header: t('time'),
      width: '92px',
      isWide: true,
      render: time,
    },
    {
      key: 'event',
      header: t('event'),
      width: 'minmax(104px, 190px)',
      render: (row) => {
        const kind = shownKinds.find((each) => each === row.event);
        const address = addressOf(row);
        const badge = (
          <Badge variant="light" color={kind ? colors[kind] : 'gray'} style={address && { cursor: 'pointer' }}>
            {kind ? t(kind) : row.event}
          </Badge>
        );
        return (
          <>
            {address ? (
              <AnchorLink {...address} underline="never" display="block" lh={1.4}>
                {badge}
              </AnchorLink>
            ) : (
              badge
            )}
            <Text size="xs" c="dimmed" className={classes.narrow}>
              {time(row)}
            </Text>
          </>
        );
      },
    },
    {
      key: 'about',
      header: t('about'),
      width: 'minmax(120px, 1.4fr)',
      isWide: true,
      render: (row) => <About row={row} />,
    },
    {
      key: 'outcome',
      header: t('outcome'),
      width: 'minmax(130px, 2fr)',
      render: (row) => {
        const state = stateOf(row);
        const outcome = outcomeOf(row, needed);
        return (
          <Group gap={6} wrap="nowrap">
            {state && (
              <span style={{ flexShrink: 0 }}>
                <DeliveryStateBadge state={state} />
              </span>
            )}
            <Text span size="sm" truncate title={withoutMarks(outcome)}>
              <PartlyEnglish>{outcome}</PartlyEnglish>
            </Text>
          </Group>
        );
      },
    },
  ];
}

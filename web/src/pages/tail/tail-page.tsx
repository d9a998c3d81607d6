import { Alert, Badge, Box, Button, Select, SimpleGrid, Text, VisuallyHidden } from '@mantine/core';
import { TbArrowDown, TbPlayerPause, TbPlayerPlay, TbPlugConnectedX } from 'react-icons/tb';
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useMemo, useRef, useState } from 'react';
import { useFormat } from '../../i18n/format.ts';
import { useNamesToChoose } from '../../parts/catalogue.ts';
import { deliveryStates, useDeliveryStateTexts } from '../../parts/delivery-state.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { ListTable } from '../../parts/list-table.tsx';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { useSubscriptionChoice } from '../../parts/subscription-choice.ts';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { filterNames, mostKept, type EventFilter } from './tail-buffer.ts';
import { addressOf, columnsFor, eventKinds } from './tail-columns.tsx';
import { useTailTexts } from './tail-texts.ts';
import { useTail } from './use-tail.ts';

/** A screen reader is told how many came, that often at most; each event would drown everything else. */
const tellEveryMs = 15_000;

export function TailPage() {
  const t = useTailTexts();
  const stateText = useDeliveryStateTexts();
  const format = useFormat();
  const navigate = useNavigate();
  const [state, set] = useUrlState();
  const filter: EventFilter = Object.fromEntries(
    filterNames.flatMap((name) => {
      const value = oneOf(state[name]);
      return value === undefined ? [] : [[name, value]];
    }),
  );
  const { tail, connection, act, again } = useTail(filter);
  const [isFollowing, setFollowing] = useState(true);
  const goToEnd = useRef<() => void>(null);
  const channels = useNamesToChoose('channels');
  const subscriptionChoice = useSubscriptionChoice(
    filter.subscription === undefined ? [] : [filter.subscription],
    ({ callbackUrl, ownerClientId }) => `${callbackUrl} (${ownerClientId})`,
  );
  const columns = useMemo(() => columnsFor({ t, format }), [t, format]);
  const isFiltered = Object.keys(filter).length > 0;
  const waiting = tail.waiting.length;
  const refusal = connection.kind === 'refused' || connection.kind === 'waiting' ? connection.error : undefined;

  const choices = [
    {
      name: 'event',
      label: t('event'),
      none: t('allEvents'),
      field: among(eventKinds.map((value) => ({ value, label: t(value) }))),
    },
    {
      name: 'channel',
      label: t('channel'),
      none: t('allChannels'),
      field: {
        // An address may have one that there is not, and the others are not read yet.
        ...among([...new Set([...(filter.channel === undefined ? [] : [filter.channel]), ...channels.names])]),
        onDropdownOpen: channels.onDropdownOpen,
      },
    },
    {
      name: 'subscription',
      label: t('subscription'),
      none: t('allSubscriptions'),
      field: subscriptionChoice.field,
    },
    {
      name: 'state',
      label: t('state'),
      none: t('allStates'),
      field: among(deliveryStates.map((value) => ({ value, label: stateText(value) }))),
    },
  ] as const;

  return (
    <>
      <PageHeader title={t('title')} description={t('description')}>
        <Badge
          role="status"
          variant="light"
          size="lg"
          color={tail.isPaused ? 'yellow' : connection.kind === 'live' ? 'green' : 'gray'}
        >
          {tail.isPaused
            ? t('paused')
            : connection.kind === 'live'
              ? t('live')
              : connection.kind === 'connecting'
                ? t('connecting')
                : '…'}
        </Badge>
        <Button
          size="xs"
          w={168}
          variant={tail.isPaused ? 'filled' : 'default'}
          leftSection={tail.isPaused ? <TbPlayerPlay size={16} aria-hidden /> : <TbPlayerPause size={16} aria-hidden />}
          onClick={() => act({ do: tail.isPaused ? 'resume' : 'pause' })}
        >
          {!tail.isPaused
            ? t('pause')
            : waiting > 0
              ? t('resumeWaiting', { waiting: format.number(waiting + tail.lost) })
              : t('resume')}
        </Button>
        <Button
          size="xs"
          variant="default"
          disabled={tail.rows.length + waiting === 0}
          onClick={() => act({ do: 'clear' })}
        >
          {t('clear')}
        </Button>
      </PageHeader>
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="xs" mb="sm">
        {choices.map(({ name, label, none, field }) => (
          <Select
            key={name}
            {...field}
            size="sm"
            aria-label={label}
            placeholder={none}
            value={filter[name] ?? null}
            onChange={(value) => set({ [name]: value ?? undefined }, true)}
            clearButtonProps={{ 'aria-label': t('reset', { name: label }) }}
          />
        ))}
      </SimpleGrid>
      <div role="status">
        {connection.kind === 'lost' && (
          <Alert color="orange" variant="light" mb="sm" p="xs" icon={<TbPlugConnectedX aria-hidden />}>
            {t('lost', { since: format.clock(connection.since) })}
          </Alert>
        )}
      </div>
      {refusal && refusal.status !== 401 && <ProblemAlert error={refusal} onRetry={again} />}
      {tail.rows.length === 0 && !refusal && (
        <EmptyState title={isFiltered ? t('noneFiltered') : t('none')}>{t('noneDetail')}</EmptyState>
      )}
      {tail.rows.length > 0 && (
        <Box pos="relative">
          <ListTable
            label={t('list')}
            columns={columns}
            rows={tail.rows}
            keyOf={({ nr }) => String(nr)}
            rowHeight={44}
            height="calc(100dvh - 270px)"
            onOpen={(row) => {
              const address = addressOf(row);
              if (address) void navigate(address);
            }}
            isFollowing={isFollowing && !tail.isPaused}
            onFollow={setFollowing}
            goToEnd={goToEnd}
          />
          {!isFollowing && (
            <Button
              pos="absolute"
              bottom={12}
              left="50%"
              style={{ transform: 'translateX(-50%)' }}
              size="xs"
              leftSection={<TbArrowDown size={14} aria-hidden />}
              onClick={() => goToEnd.current?.()}
            >
              {t('toEnd')}
            </Button>
          )}
        </Box>
      )}
      {tail.rows.length >= mostKept && (
        <Text size="xs" c="dimmed" mt={4}>
          {t('kept', { count: format.number(mostKept) })}
        </Text>
      )}
      {tail.lost > 0 && (
        <Text size="xs" c="dimmed" mt={4}>
          {t('pausedLost', { count: format.number(tail.lost) })}
        </Text>
      )}
      <News count={tail.count} />
    </>
  );
}

const among = (data: (string | { value: string; label: string })[]) => ({
  data,
  limit: 100,
  searchable: true,
  clearable: true,
});

/** Tells a screen reader that something came, and no more. */
function News({ count }: { count: number }) {
  const t = useTailTexts();
  const [told, setTold] = useState('');
  const latest = useRef(count);
  latest.current = count;
  useEffect(() => {
    let before = latest.current;
    const timer = setInterval(() => {
      const come = latest.current - before;
      before = latest.current;
      setTold(come > 0 ? t('news', { count: come }) : '');
    }, tellEveryMs);
    return () => clearInterval(timer);
  }, [t]);
  return (
    <VisuallyHidden>
      <span role="status">{told}</span>
    </VisuallyHidden>
  );
}

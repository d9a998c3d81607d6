import { Button, Group, Select, Stack, Text, TextInput, Tooltip } from '@mantine/core';
import { TbPlus, TbSearch } from 'react-icons/tb';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { CallError } from '../../parts/call-error.tsx';
import { AnchorLink } from '../../parts/links.tsx';
import { useNamesToChoose } from '../../parts/catalogue.ts';
import { answerOf, api } from '../../api/client.ts';
import { useFormat } from '../../i18n/format.ts';
import { subscriptionTotalsQuery } from '../../parts/activity.ts';
import { namedWithChosen } from '../../parts/chosen-options.ts';
import { EmptyState } from '../../parts/empty-state.tsx';
import { FoldedFilters } from '../../parts/folded-filters.tsx';
import { ListTable, type Column } from '../../parts/list-table.tsx';
import { readOn, tryAgain } from '../../parts/next-page.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { usePlainError } from '../../parts/plain-error.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { RelativeTime } from '../../parts/relative-time.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { useGoOn } from '../../parts/use-go-on.ts';
import { useTypedText } from '../../parts/use-typed-text.ts';
import { useMay } from '../../shell/session.tsx';
import { refreshMs, situationQuery, type Situation, type Subscription } from '../../subscriptions/data.ts';
import { NewSubscription, type Created } from '../../subscriptions/new-subscription.tsx';
import { SecretOnce } from '../../subscriptions/secret-once.tsx';
import { SubscriptionState, useSubscriptionStateTexts } from '../../subscriptions/subscription-state.tsx';
import { RowsProblem } from './rows-problem.tsx';
import { useSubscriptionsTexts } from './texts.ts';

const states = ['enabled', 'paused', 'parked', 'disabled', 'unreadable'] as const;
const noFilters = { state: undefined, owner: undefined, channel: undefined, endpoint: undefined, text: undefined };
const pageLength = 100;

export function SubscriptionsPage() {
  const t = useSubscriptionsTexts();
  const format = useFormat();
  const navigate = useNavigate();
  const goOn = useGoOn();
  const mayCreate = useMay('administrator');
  const [state, set] = useUrlState();
  const [created, setCreated] = useState<Created>();
  const filter = {
    // A text that is no state is refused.
    state: oneOf(state['state']) as (typeof states)[number] | undefined,
    owner: oneOf(state['owner']),
    channel: oneOf(state['channel']),
    endpoint: oneOf(state['endpoint']),
    text: oneOf(state['text']),
  };
  const isFiltered = Object.values(filter).some((each) => each !== undefined);
  const list = useInfiniteQuery({
    queryKey: ['subscriptions', filter],
    queryFn: ({ pageParam, signal }) =>
      answerOf(
        api.GET('/admin/v1/subscriptions', {
          params: { query: { ...filter, limit: pageLength, ...(pageParam && { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: '',
    getNextPageParam: (last) => last.nextCursor,
    // Every page that was read is read again: those who scrolled far are looking at something, not for what is new.
    refetchInterval: ({ state: { data } }) => ((data?.pages.length ?? 0) > 3 ? 60_000 : refreshMs * 3),
  });
  const rows = list.data?.pages.flatMap(({ subscriptions }) => subscriptions) ?? [];
  const count = list.data?.pages[0]?.count;
  const pageOf = (id: string) => ({ to: '/subscriptions/$id', params: { id } }) as const;
  const isNewOpen = state['new'] !== undefined && mayCreate;
  const startNew = mayCreate && (
    <Button leftSection={<TbPlus size={16} aria-hidden />} onClick={() => set({ new: '1' }, true)}>
      {t('new')}
    </Button>
  );
  return (
    <>
      <PageHeader title={t('title')} description={t('description')}>
        {startNew}
      </PageHeader>
      <Stack gap="sm">
        <Filters />
        {filter.endpoint !== undefined && (
          <Group gap="xs">
            <Text size="sm" className="anywhere">
              {t('leadsTo', { address: filter.endpoint })}
            </Text>
            <Button size="compact-sm" variant="default" onClick={() => set({ endpoint: undefined })}>
              {t('anyEndpoint')}
            </Button>
          </Group>
        )}
        <Text size="sm" c="dimmed" role="status" style={{ minHeight: 20 }}>
          {count === undefined ? '' : t('count', { count, formatted: format.number(count) })}
        </Text>
        {list.error && <ProblemAlert error={list.error} onRetry={tryAgain(list)} />}
        {rows[0] && <RowsProblem id={rows[0].id} />}
        {list.data && rows.length === 0 ? (
          isFiltered ? (
            <EmptyState
              title={t('noneFits')}
              action={
                <Button variant="default" onClick={() => set(noFilters)}>
                  {t('clear')}
                </Button>
              }
            >
              {t('noneFitsHelp')}
            </EmptyState>
          ) : (
            <EmptyState title={t('none')} action={startNew}>
              {t('noneHelp')}
            </EmptyState>
          )
        ) : (
          (list.data || list.isPending) && (
            <ListTable
              label={t('title')}
              columns={columnsIn(t)}
              rows={rows}
              keyOf={({ id }) => id}
              rowHeight={58}
              onOpen={({ id }) => void navigate(pageOf(id))}
              onEnd={readOn(list)}
              isLoading={list.isPending || list.isFetchingNextPage}
              height="calc(100dvh - 310px)"
            />
          )
        )}
      </Stack>
      {mayCreate && (
        <NewSubscription
          opened={isNewOpen}
          channel={oneOf(state['on'])}
          onClose={() => set({ new: undefined, on: undefined })}
          onCreated={(made) => (made.signingSecret === null ? void goOn(pageOf(made.id)) : setCreated(made))}
        />
      )}
      <SecretOnce secret={created?.signingSecret ?? null} onClose={() => created && void goOn(pageOf(created.id))} />
    </>
  );
}

function Filters() {
  const t = useSubscriptionsTexts();
  const stateText = useSubscriptionStateTexts();
  const [state, set] = useUrlState();
  const channels = useNamesToChoose('channels');
  const owners = useNamesToChoose('applications');
  const [typed, type] = useTypedText('text');
  const chosenState = oneOf(state['state']);
  const choose = (name: 'owner' | 'channel', { names, isLoading, onDropdownOpen }: typeof channels) => {
    const chosen = oneOf(state[name]);
    return (
      <Select
        aria-label={t(name)}
        placeholder={t(name)}
        data={[...new Set([...names, ...(chosen === undefined ? [] : [chosen])])].sort()}
        value={chosen ?? null}
        searchable
        clearable
        clearButtonProps={{ 'aria-label': t('clearOne', { name: t(name) }) }}
        limit={100}
        nothingFoundMessage={isLoading ? '…' : t('noSuch')}
        onDropdownOpen={onDropdownOpen}
        onChange={(value) => set({ [name]: value ?? undefined })}
        w={{ base: '100%', xs: 200 }}
      />
    );
  };
  return (
    <Group gap="xs" role="search" aria-label={t('filters')}>
      <TextInput
        aria-label={t('text')}
        placeholder={t('text')}
        type="search"
        leftSection={<TbSearch size={16} aria-hidden />}
        value={typed}
        onChange={(event) => type(event.currentTarget.value)}
        w={{ base: '100%', xs: 260 }}
      />
      <FoldedFilters chosen={['state', 'channel', 'owner'].filter((name) => state[name] !== undefined).length}>
        <Group gap="xs">
          <Select
            aria-label={t('state')}
            placeholder={t('state')}
            data={namedWithChosen(states, stateText, chosenState === undefined ? [] : [chosenState])}
            value={chosenState ?? null}
            clearable
            clearButtonProps={{ 'aria-label': t('clearOne', { name: t('state') }) }}
            onChange={(value) => set({ state: value ?? undefined })}
            w={{ base: '100%', xs: 160 }}
          />
          {choose('channel', channels)}
          {choose('owner', owners)}
        </Group>
      </FoldedFilters>
    </Group>
  );
}

type Texts = ReturnType<typeof useSubscriptionsTexts>;

const columnsIn = (t: Texts): Column<Subscription>[] => [
  {
    key: 'callback',
    header: t('callback'),
    width: 'minmax(180px, 2.2fr)',
    narrowWidth: 'minmax(80px, 1fr)',
    render: (subscription) => <Callback subscription={subscription} />,
  },
  {
    key: 'state',
    header: t('state'),
    width: 'minmax(104px, 0.8fr)',
    narrowWidth: '128px',
    render: (subscription) => (
      <WithSituation id={subscription.id}>
        {(situation) => <SubscriptionState subscription={subscription} situation={situation} size="sm" />}
      </WithSituation>
    ),
  },
  {
    key: 'channels',
    header: t('channels'),
    width: 'minmax(100px, 1.1fr)',
    isWide: true,
    render: ({ channels }) => {
      const names = [...new Set(channels.map(({ channel }) => channel))];
      return names.length === 0 ? '–' : <span title={names.join(', ')}>{names.join(', ')}</span>;
    },
  },
  { key: 'pace', header: t('pace'), width: '92px', isWide: true, align: 'right', render: (each) => <Pace {...each} /> },
  {
    key: 'held',
    header: t('held'),
    width: '100px',
    isWide: true,
    align: 'right',
    render: ({ id }) => <WithSituation id={id}>{(situation) => <Held situation={situation} />}</WithSituation>,
  },
  {
    key: 'success',
    header: t('success'),
    width: '84px',
    isWide: true,
    align: 'right',
    render: ({ id }) => <Success id={id} />,
  },
  {
    key: 'failure',
    header: t('failure'),
    width: 'minmax(110px, 1.2fr)',
    isWide: true,
    render: ({ id }) => <WithSituation id={id}>{(situation) => <LastFailure situation={situation} />}</WithSituation>,
  },
];

/** Only rows on the screen ask; all that do are asked for together. */
function WithSituation({ id, children }: { id: string; children: (found: Situation | null | undefined) => ReactNode }) {
  const { data } = useQuery(situationQuery(id));
  return children(data);
}

function Callback({ subscription: { id, callbackUrl, ownerClientId } }: { subscription: Subscription }) {
  return (
    <>
      <AnchorLink size="sm" fw={500} truncate display="block" title={callbackUrl} to={`/subscriptions/${id}`}>
        {callbackUrl.replace(/^https:\/\//, '')}
      </AnchorLink>
      <Text size="xs" c="dimmed" truncate>
        {ownerClientId}
      </Text>
    </>
  );
}

function Pace({ ratePerSecond, maxConcurrency }: Subscription) {
  const t = useSubscriptionsTexts();
  const format = useFormat();
  if (ratePerSecond === null && maxConcurrency === null) return '–';
  return (
    <Stack gap={0}>
      {ratePerSecond !== null && <span>{t('rate', { rate: format.number(ratePerSecond) })}</span>}
      {maxConcurrency !== null && (
        <Tooltip label={t('windowHelp')}>
          <Text span size="xs" c="dimmed">
            {t('window', { count: maxConcurrency })}
          </Text>
        </Tooltip>
      )}
    </Stack>
  );
}

/** In a cell: what is not read, or could not be read, is not nothing. */
const notKnown = '…';
/** More are not counted. */
const mostCounted = 1000;

function Held({ situation }: { situation: Situation | null | undefined }) {
  const format = useFormat();
  if (!situation) return notKnown;
  if (situation.held === 0) return '–';
  return (
    <Stack gap={0}>
      <span>{situation.held >= mostCounted ? `≥ ${format.number(mostCounted)}` : format.number(situation.held)}</span>
      <RelativeTime at={situation.oldestHeldAt} fz="xs" c="dimmed" />
    </Stack>
  );
}

function Success({ id }: { id: string }) {
  const t = useSubscriptionsTexts();
  const format = useFormat();
  const { data: totals } = useQuery(subscriptionTotalsQuery(id));
  if (!totals) return notKnown;
  const ended = totals.delivered + totals.gaveUp;
  if (ended === 0) return '–';
  return (
    <span
      title={t('successHelp', { delivered: format.number(totals.delivered), gaveUp: format.number(totals.gaveUp) })}
    >
      {format.percent(totals.delivered / ended)}
    </span>
  );
}

function LastFailure({ situation }: { situation: Situation | null | undefined }) {
  const plain = usePlainError();
  if (!situation) return notKnown;
  const failure = situation.lastFailure;
  if (!failure) return '–';
  const error = plain(failure.error) ?? (failure.status === null ? '–' : `HTTP ${failure.status}`);
  return (
    <>
      <Text size="sm" truncate title={error}>
        <AnchorLink inherit to={`/notifications/${failure.notificationId}`}>
          {failure.error === null ? error : <CallError error={failure.error} />}
        </AnchorLink>
      </Text>
      <RelativeTime at={failure.acceptedAt} fz="xs" c="dimmed" />
    </>
  );
}

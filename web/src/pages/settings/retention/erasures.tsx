import { Anchor, Badge, Button, Group, Paper, Skeleton, Stack, Text, Title } from '@mantine/core';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { components } from '../../../../generated/admin-api.d.ts';
import { answerOf, api } from '../../../api/client.ts';
import { untilItPasses } from '../../../api/queries.ts';
import { useFormat } from '../../../i18n/format.ts';
import { BusyButton } from '../../../parts/busy-button.tsx';
import { Confirm } from '../../../parts/confirm.tsx';
import { tryAgain } from '../../../parts/next-page.ts';
import { ProblemAlert } from '../../../parts/problem-alert.tsx';
import { RelativeTime } from '../../../parts/relative-time.tsx';
import { useMay } from '../../../shell/session.tsx';
import { erasuresKey, NewErasure } from './new-erasure.tsx';
import { useRetentionTexts } from './texts.ts';

type Erasure = components['schemas']['Erasure'];

const finished = new Set(['done', 'abandoned', 'counted']);
const colors = { counting: 'blue', counted: 'yellow', erasing: 'blue', ending: 'blue', done: 'green' } as const;

/** Erasures by hand, those included that wait to be confirmed. */
export function Erasures() {
  const t = useRetentionTexts();
  const mayErase = useMay('administrator');
  /** The main objects that were typed here, by the erasure that they began: Heraut tells only their hash. */
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const asked = useInfiniteQuery({
    queryKey: erasuresKey,
    queryFn: ({ pageParam, signal }) =>
      answerOf(api.GET('/admin/v1/erasures', { params: { query: { cursor: pageParam } }, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: (query) => {
      const pages = query.state.data?.pages ?? [];
      const isUnderWay = pages.some(({ erasures }) => erasures.some(({ state }) => !finished.has(state)));
      // Every page that was read is read again: one a second.
      return isUnderWay ? 1_000 * pages.length : untilItPasses(query);
    },
  });
  const erasures = asked.data?.pages.flatMap((page) => page.erasures);
  return (
    <Paper withBorder p="md">
      <Title order={2} mb="xs">
        {t('erasures')}
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        {t('erasuresHint')}
      </Text>
      {mayErase && (
        <NewErasure onCounted={(id, mainObject) => setTyped((before) => ({ ...before, [id]: mainObject }))} />
      )}
      {asked.error && <ProblemAlert error={asked.error} onRetry={tryAgain(asked)} />}
      {!erasures && !asked.error && <Skeleton height={80} />}
      {erasures?.length === 0 && (
        <Text size="sm" c="dimmed">
          {t('noErasures')}
        </Text>
      )}
      <Stack gap="sm">
        {erasures?.map((erasure) => (
          <ErasureRow key={erasure.id} erasure={erasure} mainObject={typed[erasure.id]} mayErase={mayErase} />
        ))}
        {asked.hasNextPage && (
          <Group>
            <BusyButton variant="default" isBusy={asked.isFetchingNextPage} onClick={() => void asked.fetchNextPage()}>
              {t('more')}
            </BusyButton>
          </Group>
        )}
      </Stack>
    </Paper>
  );
}

interface RowProps {
  erasure: Erasure;
  /** Where this page knows it. */
  mainObject: string | undefined;
  mayErase: boolean;
}

function ErasureRow({ erasure, mainObject, mayErase }: RowProps) {
  const t = useRetentionTexts();
  const format = useFormat();
  const client = useQueryClient();
  const [isAsking, ask] = useState(false);
  const { id, state, notification, mainObjectHash, found, erased, cancelled, requestedAt, searchedTo } = erasure;
  const about = mainObject ?? t('aboutMainObject', { hash: mainObjectHash?.slice(0, 12) });
  return (
    <Group justify="space-between" align="flex-start" wrap="nowrap">
      <div style={{ minWidth: 0 }}>
        <Group gap="xs">
          <Badge variant="light" color={colors[state as keyof typeof colors] ?? 'gray'}>
            {t(state)}
          </Badge>
          <Text size="sm" component="div" className="anywhere">
            {notification === null ? (
              <span title={mainObjectHash ?? ''}>{about}</span>
            ) : (
              <Anchor component={Link} to="/notifications/$id" params={{ id: notification } as never} size="sm">
                {notification}
              </Anchor>
            )}
          </Text>
        </Group>
        <Text size="xs" c="dimmed" component="div">
          {t('requested')} <RelativeTime at={requestedAt} /> · {t('found')} {format.number(found)} · {t('erased')}{' '}
          {format.number(erased)} · {t('cancelled')} {format.number(cancelled)}
          {searchedTo !== null && ` · ${t('searchedTo', { time: format.time(searchedTo) })}`}
        </Text>
      </div>
      {mayErase && state === 'counted' && (
        <Button size="xs" color="red" variant="light" onClick={() => ask(true)}>
          {t('eraseAction', { count: found })}
        </Button>
      )}
      <Confirm
        opened={isAsking}
        onClose={() => ask(false)}
        title={t('eraseTitle', { count: found })}
        action={t('eraseAction', { count: found })}
        word={String(found)}
        onConfirm={async () => {
          const params = { path: { erasureId: id } };
          await answerOf(api.POST('/admin/v1/erasures/{erasureId}/confirm', { params, body: { confirm: found } }));
          await client.invalidateQueries({ queryKey: erasuresKey });
        }}
      >
        <Text size="sm" className="anywhere">
          {t('about', { about })}
        </Text>
        <Text size="sm">
          {t('requested')} {format.time(requestedAt)}
        </Text>
        <Text size="sm">{t('eraseDetail')}</Text>
      </Confirm>
    </Group>
  );
}

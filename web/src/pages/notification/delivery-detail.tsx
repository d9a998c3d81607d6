import { Alert, Button, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { AnchorLink } from '../../parts/links.tsx';
import { answerOf, api } from '../../api/client.ts';
import { isProblem } from '../../api/problem.ts';
import { untilItPasses } from '../../api/queries.ts';
import { useFormat } from '../../i18n/format.ts';
import { isEnded } from '../../parts/delivery-state.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { AttemptCard } from './attempt-card.tsx';
import { useNotificationTexts } from './notification-texts.ts';
import { lookAgainMs, useReadAfter, type ShownDelivery } from './whole-notification.ts';

interface Props {
  notificationId: string;
  /** As the page shows it, the same object until it changes. */
  shown: ShownDelivery;
}

const mostAtOnce = 5;

const unlessDeleted = <T,>(found: Promise<T>): Promise<T | undefined> =>
  found.catch((error: unknown) => {
    if (isProblem(error) && error.status === 404) return undefined;
    throw error;
  });

/** Every attempt of one delivery, the latest first, and what it does at this moment. */
export function DeliveryDetail({ notificationId, shown }: Props) {
  const t = useNotificationTexts();
  const format = useFormat();
  const { subscriptionId, state } = shown;
  const [isWhole, setWhole] = useState(false);
  const path = { notificationId, subscriptionId };
  const delivery = useQuery({
    queryKey: ['notification', notificationId, 'delivery', subscriptionId],
    queryFn: ({ signal }) =>
      answerOf(api.GET('/admin/v1/deliveries/{notificationId}/{subscriptionId}', { params: { path }, signal })),
    refetchInterval: (query) => {
      const { data } = query.state;
      return data && !isEnded(state) ? lookAgainMs([data]) : untilItPasses(query);
    },
  });
  useReadAfter(shown, delivery);
  // Its headers are those of the subscription as it is now; one that is deleted has none.
  const subscription = useQuery({
    queryKey: ['subscription', subscriptionId, 'headers'],
    queryFn: async ({ signal }) => {
      const found = unlessDeleted(
        answerOf(api.GET('/admin/v1/subscriptions/{subscriptionId}', { params: { path: { subscriptionId } }, signal })),
      );
      return (await found)?.credentials ?? null;
    },
    staleTime: 60_000,
  });
  const keys = useQuery({
    queryKey: ['subscription', subscriptionId, 'is-signed'],
    queryFn: async ({ signal }) => {
      const found = unlessDeleted(
        answerOf(
          api.GET('/admin/v1/subscriptions/{subscriptionId}/signing-keys', {
            params: { path: { subscriptionId } },
            signal,
          }),
        ),
      );
      return ((await found)?.signingKeys.length ?? 0) > 0;
    },
    staleTime: 60_000,
  });
  const error = delivery.error ?? subscription.error ?? keys.error;
  const again = () => void Promise.all([delivery, subscription, keys].map((each) => each.refetch()));
  if (!delivery.data) return error ? <ProblemAlert error={error} onRetry={again} /> : <Skeleton height={96} />;
  const { attempts, live, replayId } = delivery.data;
  const latest = attempts.toReversed();
  const hidden = isWhole ? 0 : Math.max(0, latest.length - mostAtOnce);
  return (
    <>
      {error && <ProblemAlert error={error} onRetry={again} />}
      {live?.status === 'sending' && live.startedAt !== null && (
        <Alert variant="light" p="xs" mb="sm">
          {t('openNow', { since: format.clock(live.startedAt) })}
        </Alert>
      )}
      {replayId !== null && (
        <AnchorLink size="sm" to="/replays/$id" params={{ id: replayId }}>
          {t('replayOf')}
        </AnchorLink>
      )}
      {latest.length === 0 && t('noAttempts')}
      {latest.slice(0, latest.length - hidden).map((attempt) => (
        <AttemptCard
          key={attempt.number}
          attempt={attempt}
          notificationId={notificationId}
          ownHeaders={subscription.data?.headers ?? []}
          isSigned={keys.data ?? false}
        />
      ))}
      {hidden > 0 && (
        <Button mt="sm" size="compact-sm" variant="default" onClick={() => setWhole(true)}>
          {t('olderAttempts', { count: hidden })}
        </Button>
      )}
    </>
  );
}

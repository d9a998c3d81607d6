import { CloseButton, Group, Paper, Progress, Skeleton, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { CallError } from '../../parts/call-error.tsx';
import { AnchorLink, ButtonLink } from '../../parts/links.tsx';
import { answerOf, api } from '../../api/client.ts';
import { isProblem } from '../../api/problem.ts';
import { useFormat } from '../../i18n/format.ts';
import { CopyButton } from '../../parts/copy-button.tsx';
import { DeliveryStateBadge, isEnded } from '../../parts/delivery-state.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { RelativeTime } from '../../parts/relative-time.tsx';
import { lookAgainMs } from './look-again.ts';
import { usePublishTexts } from './texts.ts';

/** The answer of the API; only the id of it is in the address. */
export interface PublicationAnswer {
  id: string;
  duplicateOf: string | null;
  deliveryCount: number | null;
  isTooOld: boolean;
}

interface Props {
  id: string;
  answer?: PublicationAnswer | undefined;
  onClose: () => void;
}

/** The deliveries of a published notification, until all have ended. */
export function Published({ id, answer, onClose }: Props) {
  const t = usePublishTexts();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (answer) heading.current?.focus();
  }, [answer]);
  const isDuplicate = typeof answer?.duplicateOf === 'string';
  const title = isDuplicate
    ? t('duplicateTitle')
    : answer?.isTooOld
      ? t('tooOldTitle')
      : answer && answer.deliveryCount === null
        ? t('replayed')
        : t('published');
  return (
    <Paper withBorder p="md" component="section" aria-label={title}>
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <Title order={2} ref={heading} tabIndex={-1} style={{ outline: 'none' }}>
          {title}
        </Title>
        <CloseButton aria-label={t('again')} onClick={onClose} />
      </Group>
      <Stack gap="sm">
        {isDuplicate && <Text size="sm">{t('duplicateDetail')}</Text>}
        {answer?.isTooOld && <Text size="sm">{t('tooOldDetail')}</Text>}
        <Group gap={4} wrap="nowrap">
          <Text size="xs" ff="monospace" className="anywhere">
            {id}
          </Text>
          <CopyButton value={id} />
        </Group>
        {!isDuplicate && <DeliveriesOf id={id} />}
        <Group>
          <ButtonLink size="xs" variant="light" to="/notifications/$id" params={{ id }}>
            {t('toNotification')}
          </ButtonLink>
        </Group>
      </Stack>
    </Paper>
  );
}

export function DeliveriesOf({ id }: { id: string }) {
  const t = usePublishTexts();
  const format = useFormat();
  const { data, error } = useQuery({
    queryKey: ['publish', 'deliveries', id],
    queryFn: () => answerOf(api.GET('/admin/v1/notifications/{id}', { params: { path: { id } } })),
    refetchInterval: ({ state: { data: known, error: failure } }) =>
      lookAgainMs(
        known?.deliveries.map(({ state }) => state).filter((state) => !isEnded(state)),
        failure,
      ),
  });
  if (isProblem(error) && error.status === 404) return <Text size="sm">{t('notThere')}</Text>;
  if (error && !data) return <ProblemAlert error={error} />;
  if (!data) return <Skeleton height={60} role="status" aria-label={t('loading')} />;
  const { deliveries, nextCursor } = data;
  if (deliveries.length === 0)
    return (
      <div role="status">
        <Text size="sm" fw={600}>
          {t('nobody')}
        </Text>
        <Text size="sm" c="dimmed">
          {t('nobodyDetail')}
        </Text>
      </div>
    );
  const delivered = deliveries.filter(({ state }) => state === 'delivered').length;
  // Of those behind the page nothing is known here: it may be short, where receivers answered much.
  const isPart = nextCursor !== null;
  const isOver = !isPart && deliveries.every(({ state }) => isEnded(state));
  return (
    <Stack gap="xs">
      <div role="status">
        <Text size="sm" fw={600}>
          {t(isOver && delivered < deliveries.length ? 'progressEnded' : 'progress', {
            delivered: format.number(delivered),
            count: format.number(deliveries.length),
          })}
        </Text>
      </div>
      <Progress
        value={(delivered / deliveries.length) * 100}
        color={isOver && delivered < deliveries.length ? 'red' : 'green'}
        aria-label={t('progress', { delivered, count: deliveries.length })}
        size="sm"
      />
      {deliveries.map((delivery) => (
        <Group key={delivery.subscriptionId} justify="space-between" wrap="nowrap" align="flex-start" gap="xs">
          <div style={{ minWidth: 0 }}>
            <AnchorLink size="sm" className="anywhere" to="/subscriptions/$id" params={{ id: delivery.subscriptionId }}>
              {delivery.callbackUrl ?? delivery.subscriptionId}
            </AnchorLink>
            <Text size="xs" c="dimmed" component="div" className="anywhere">
              {t('attempts', { count: delivery.attemptCount })}
              {delivery.state !== 'delivered' && delivery.lastError !== null && (
                <>
                  {' · '}
                  <CallError error={delivery.lastError} />
                </>
              )}
              {delivery.nextAttemptAt !== null && (
                <>
                  {' · '}
                  {t('next')} <RelativeTime at={delivery.nextAttemptAt} />
                </>
              )}
            </Text>
          </div>
          <div style={{ flexShrink: 0 }}>
            <DeliveryStateBadge state={delivery.state} />
          </div>
        </Group>
      ))}
      {isPart && (
        <Text size="xs" c="dimmed">
          {t('progressMore')}
        </Text>
      )}
    </Stack>
  );
}

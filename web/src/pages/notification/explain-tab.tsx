import { Badge, Button, Group, Paper, Select, Skeleton, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { BusyButton } from '../../parts/busy-button.tsx';
import { PartlyEnglish } from '../../parts/in-english.tsx';
import { AnchorLink, ButtonLink } from '../../parts/links.tsx';
import type { components } from '../../../generated/admin-api.d.ts';
import { answerOf, api } from '../../api/client.ts';
import { DeliveryStateBadge } from '../../parts/delivery-state.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { useExplanationText } from '../../parts/explanation-text.ts';
import { tryAgain } from '../../parts/next-page.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { useSubscriptionChoice } from '../../parts/subscription-choice.ts';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { useMay } from '../../shell/session.tsx';
import { useNotificationTexts } from './notification-texts.ts';
import classes from './notification.module.css';
import { ReplayDialog } from './replay-dialog.tsx';
import { useReadAfter, type ShownDelivery } from './whole-notification.ts';

type Explanation = components['schemas']['Explanation'];

/**
 * Why each subscription gets it, or not: all of them page by page, or one that is sought by its name.
 * @param deliveries as the page shows them, the same array until one of them changes
 */
export function ExplainTab({ id, deliveries }: { id: string; deliveries: readonly ShownDelivery[] }) {
  const t = useNotificationTexts();
  const [state, set] = useUrlState();
  const subscription = oneOf(state['subscription']);
  const { field } = useSubscriptionChoice(
    subscription === undefined ? [] : [subscription],
    ({ id: ofIt, callbackUrl, ownerClientId }) => `${callbackUrl} (${ownerClientId}) ${ofIt}`,
  );
  const found = useInfiniteQuery({
    queryKey: ['notification', id, 'explanations', subscription],
    queryFn: ({ pageParam, signal }) =>
      answerOf(
        api.GET('/admin/v1/notifications/{notificationId}/explanations', {
          params: {
            path: { notificationId: id },
            query: subscription === undefined ? { cursor: pageParam, limit: 20 } : { subscription },
          },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
  });
  useReadAfter(deliveries, found);
  const explanations = found.data?.pages.flatMap((page) => page.explanations) ?? [];
  return (
    <>
      <Select
        {...field}
        mb="sm"
        maw={520}
        label={t('ask')}
        placeholder={t('askPlaceholder')}
        value={subscription ?? null}
        onChange={(value) => set({ subscription: value ?? undefined }, true)}
        clearButtonProps={{ 'aria-label': t('askClear') }}
      />
      {found.error && <ProblemAlert error={found.error} onRetry={tryAgain(found)} />}
      {found.isLoading && <Skeleton height={120} />}
      {found.isSuccess && explanations.length === 0 && !found.hasNextPage && (
        <EmptyState
          title={t('noneAbout')}
          action={
            <ButtonLink variant="default" to="/subscriptions">
              {t('toSubscriptions')}
            </ButtonLink>
          }
        >
          {t('noneAboutDetail')}
        </EmptyState>
      )}
      <Stack gap="sm">
        {explanations.map((explanation) => (
          <Judgement key={explanation.subscriptionId} id={id} explanation={explanation} />
        ))}
      </Stack>
      {found.hasNextPage && (
        <BusyButton
          mt="sm"
          variant="default"
          isBusy={found.isFetchingNextPage}
          onClick={() => void found.fetchNextPage()}
        >
          {t('more')}
        </BusyButton>
      )}
    </>
  );
}

function Judgement({ id, explanation }: { id: string; explanation: Explanation }) {
  const t = useNotificationTexts();
  const textOf = useExplanationText();
  const may = useMay('operator');
  const [asks, setAsks] = useState(false);
  const { subscriptionId, callbackUrl, ownerClientId, verdict, entries, entryCount, delivery } = explanation;
  const isIn = verdict === 'matched';
  return (
    <Paper withBorder p="sm" component="section" aria-label={callbackUrl}>
      <Group justify="space-between" gap="xs" mb={6}>
        <div className={classes.long}>
          <AnchorLink size="sm" to="/subscriptions/$id" params={{ id: subscriptionId }}>
            <bdi>{callbackUrl}</bdi>
          </AnchorLink>
          <Text size="xs" c="dimmed">
            <bdi>{ownerClientId}</bdi>
          </Text>
        </div>
        <Group gap="xs">
          <Badge variant="light" color={isIn ? 'green' : 'orange'}>
            {verdict === 'unknown' ? t('unsure') : t(verdict)}
          </Badge>
          {delivery && <DeliveryStateBadge state={delivery.state} />}
          {may && !delivery && (
            <Button size="xs" variant="default" onClick={() => setAsks(true)}>
              {t('sendTo')}
            </Button>
          )}
        </Group>
      </Group>
      <Text size="sm" className="anywhere">
        <bdi>
          <PartlyEnglish>{textOf.ofNotification(explanation)}</PartlyEnglish>
        </bdi>
      </Text>
      {entries.map(({ number, isMet, filters }) => (
        <div key={number}>
          <Text size="sm" fw={600} mt="xs">
            {t('entry', { number })}: {isMet ? t('met') : t('notMet')}
          </Text>
          {filters.length === 0 ? (
            <Text size="sm">{t('noFilters')}</Text>
          ) : (
            <Table.ScrollContainer minWidth={420} scrollAreaProps={{ viewportProps: { tabIndex: 0 } }}>
              <Table fz="sm" verticalSpacing={2}>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>{t('name')}</Table.Th>
                    <Table.Th>{t('wanted')}</Table.Th>
                    <Table.Th>{t('actual')}</Table.Th>
                    <Table.Th>{t('verdict')}</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {filters.map(({ name, wanted, actual, result }) => (
                    <Table.Tr key={name}>
                      <Table.Td>
                        <bdi>{name}</bdi>
                      </Table.Td>
                      <Table.Td>
                        <bdi>{wanted}</bdi>
                      </Table.Td>
                      <Table.Td>
                        <bdi>{actual ?? t('absent')}</bdi>
                      </Table.Td>
                      <Table.Td className={result === 'different' ? classes.differs : undefined}>
                        {t(result === 'absent' ? 'isAbsent' : result)}
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Table.ScrollContainer>
          )}
        </div>
      ))}
      {entryCount > entries.length && (
        <Text size="sm" c="dimmed">
          {t('moreEntries', { count: entryCount - entries.length })}
        </Text>
      )}
      {explanation.catalogue === 'as-far-as-known' && (
        <Text size="xs" c="dimmed" mt={4}>
          {t('asKnown')}
        </Text>
      )}
      {asks && (
        <ReplayDialog id={id} subscriptionId={subscriptionId} name={callbackUrl} onClose={() => setAsks(false)} />
      )}
    </Paper>
  );
}

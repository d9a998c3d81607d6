import { Badge, Code, Group, Skeleton, Tabs, Text } from '@mantine/core';
import { useMemo } from 'react';
import { ButtonLink } from '../../parts/links.tsx';
import { isProblem } from '../../api/problem.ts';
import { useFormat } from '../../i18n/format.ts';
import { CopyButton } from '../../parts/copy-button.tsx';
import { deliveryStates, DeliveryStateBadge } from '../../parts/delivery-state.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { tryAgain } from '../../parts/next-page.ts';
import { useIdInAddress } from '../../parts/id-in-address.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { BodyTab } from './body-tab.tsx';
import { DeliveriesTab } from './deliveries-tab.tsx';
import { ExplainTab } from './explain-tab.tsx';
import { Facts } from './facts.tsx';
import { useNotificationTexts } from './notification-texts.ts';
import { StoryTab } from './story-tab.tsx';
import { contentOf, useChanges, useWhole } from './whole-notification.ts';

const tabs = ['deliveries', 'story', 'body', 'explain'] as const;

/** All of one notification: its content, its receivers, its deliveries, and the actions on them. */
export function NotificationPage() {
  const t = useNotificationTexts();
  const format = useFormat();
  const id = useIdInAddress();
  const [state, set] = useUrlState();
  const whole = useWhole(id);
  const first = whole.data?.pages[0];
  const deliveries = useMemo(() => whole.data?.pages.flatMap((page) => page.deliveries), [whole.data]);
  const changes = useChanges(id, deliveries, whole.hasNextPage, whole.isFetching);
  const content = useMemo(() => contentOf(first?.body ?? null), [first?.body]);
  const tab = tabs.find((each) => each === oneOf(state['tab'])) ?? 'deliveries';

  if (whole.error && !first) {
    if (isProblem(whole.error) && whole.error.status === 404)
      return (
        <>
          <PageHeader title={t('notification')} description={<Code>{id}</Code>} />
          <EmptyState
            title={t('unknown')}
            action={
              <ButtonLink variant="default" to="/notifications">
                {t('toList')}
              </ButtonLink>
            }
          >
            {t('unknownDetail')}
          </EmptyState>
        </>
      );
    return (
      <>
        <PageHeader title={t('notification')} description={<Code>{id}</Code>} />
        <ProblemAlert error={whole.error} onRetry={() => void whole.refetch()} />
      </>
    );
  }
  if (!first || !deliveries)
    return (
      <>
        <PageHeader title={t('notification')} description={<Code>{id}</Code>} />
        <Skeleton height={132} mb="md" />
        <Skeleton height={240} />
      </>
    );

  const title = [content.action, content.resource].filter((part) => part !== undefined && part !== '').join(' ');
  // The story of each page begins with the notification itself.
  const story = whole.data!.pages.flatMap((page, number) =>
    number === 0 ? page.story : page.story.filter(({ subscriptionId }) => subscriptionId !== null),
  );
  const { count, isExact } = first.deliveryCount;
  const counts = deliveryStates.flatMap((each) => {
    const ofIt = deliveries.filter((delivery) => delivery.state === each).length;
    return ofIt === 0 ? [] : [[each, ofIt] as const];
  });
  return (
    <>
      <PageHeader
        title={title.slice(0, 200) || (first.body === null ? t('noText') : t('notification'))}
        description={
          <Group gap={4} wrap="nowrap">
            <Code className="anywhere">{id}</Code>
            <CopyButton value={id} label={t('copyId')} />
          </Group>
        }
      >
        <Group gap={6} role="status">
          {counts.map(([each, ofIt]) => (
            <DeliveryStateBadge
              key={each}
              state={each}
              count={deliveries.length > 1 || whole.hasNextPage ? ofIt : undefined}
            />
          ))}
          {whole.hasNextPage && (
            <Text size="sm" c="dimmed">
              {t('ofShown', { shown: format.number(deliveries.length) })}
            </Text>
          )}
        </Group>
      </PageHeader>
      {whole.error && <ProblemAlert error={whole.error} onRetry={tryAgain(whole)} />}
      {!whole.error && changes.error && <ProblemAlert error={changes.error} onRetry={changes.again} />}
      <Facts whole={first} content={content} />
      <Tabs
        value={tab}
        onChange={(value) => set({ tab: value === 'deliveries' ? undefined : (value ?? undefined) }, true)}
        keepMounted={false}
      >
        <Tabs.List mb="sm">
          <Tabs.Tab
            value="deliveries"
            rightSection={
              <Badge size="sm" variant="light" color="gray">
                {format.number(count)}
                {isExact ? '' : '+'}
              </Badge>
            }
          >
            {t('deliveries')}
          </Tabs.Tab>
          <Tabs.Tab value="story">{t('story')}</Tabs.Tab>
          <Tabs.Tab value="body">{t('body')}</Tabs.Tab>
          <Tabs.Tab value="explain">{t('explain')}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="deliveries">
          <DeliveriesTab
            id={id}
            deliveries={deliveries}
            onMore={whole.hasNextPage ? () => void whole.fetchNextPage() : undefined}
            isLoading={whole.isFetchingNextPage}
          />
        </Tabs.Panel>
        <Tabs.Panel value="story">
          <StoryTab story={story} deliveries={deliveries} isPart={whole.hasNextPage} />
        </Tabs.Panel>
        <Tabs.Panel value="body">
          <BodyTab id={id} body={first.body} />
        </Tabs.Panel>
        <Tabs.Panel value="explain">
          <ExplainTab id={id} deliveries={deliveries} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}

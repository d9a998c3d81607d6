import { Badge, Code, Group, Skeleton, Stack, Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { ButtonLink } from '../../parts/links.tsx';
import { isProblem } from '../../api/problem.ts';
import { GoneNotice } from '../../drafts/gone-notice.tsx';
import { IsGone } from '../../drafts/use-draft.ts';
import { CopyButton } from '../../parts/copy-button.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { useIdInAddress } from '../../parts/id-in-address.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { useGoOn } from '../../parts/use-go-on.ts';
import { situationQuery, subscriptionQuery } from '../../subscriptions/data.ts';
import { SubscriptionState } from '../../subscriptions/subscription-state.tsx';
import { Actions } from './actions.tsx';
import { CredentialsTab } from './credentials-tab.tsx';
import { DeliveryTab } from './delivery-tab.tsx';
import { FiltersTab } from './filters-tab.tsx';
import { OverviewTab } from './overview-tab.tsx';
import { RetriesTab } from './retries-tab.tsx';
import { SigningTab } from './signing-tab.tsx';
import { useSubscriptionTexts } from './texts.ts';

const tabs = ['overview', 'filters', 'delivery', 'retries', 'credentials', 'signing'] as const;

export function SubscriptionPage() {
  const id = useIdInAddress();
  const t = useSubscriptionTexts();
  const [state, set] = useUrlState();
  const tab = tabs.find((each) => each === oneOf(state['tab'])) ?? 'overview';
  const goOn = useGoOn();
  const { data, error, refetch } = useQuery(subscriptionQuery(id));
  const { data: situation, error: unknown, refetch: askAgain } = useQuery(situationQuery(id));
  const isGone = isProblem(error) && error.status === 404;
  const toList = (
    <ButtonLink mt="xs" to="/subscriptions">
      {t('toList')}
    </ButtonLink>
  );
  // Where it was there a moment ago, somebody may be typing.
  if (isGone && !data)
    return (
      <>
        <PageHeader title={t('title')} />
        <EmptyState title={t('gone')} action={toList}>
          {t('goneHelp')}
        </EmptyState>
      </>
    );
  if (!data)
    return (
      <>
        <PageHeader title={t('title')} />
        {error ? (
          <ProblemAlert error={error} onRetry={() => void refetch()} />
        ) : (
          <Stack>
            <Skeleton height={36} />
            <Skeleton height={280} />
          </Stack>
        )}
      </>
    );
  const { data: subscription, tag } = data;
  return (
    <>
      <PageHeader
        title={subscription.callbackUrl}
        description={
          <Group gap="xs" mt={6}>
            <SubscriptionState subscription={subscription} situation={situation} />
            <Badge variant="default">{t('of', { owner: subscription.ownerClientId })}</Badge>
            <Group gap={2} wrap="nowrap">
              <Code>{id}</Code>
              <CopyButton value={id} label={t('copyId')} />
            </Group>
          </Group>
        }
      >
        {!isGone && (
          <Actions
            subscription={subscription}
            tag={tag}
            situation={situation}
            onDeleted={() => goOn({ to: '/subscriptions' })}
          />
        )}
      </PageHeader>
      {isGone ? (
        <GoneNotice title={t('goneMeanwhile')} detail={t('goneHelp')}>
          {toList}
        </GoneNotice>
      ) : (
        (error ?? unknown) && (
          <ProblemAlert error={error ?? unknown} onRetry={() => void Promise.all([refetch(), askAgain()])} />
        )
      )}
      <Tabs
        value={tab}
        onChange={(value) => set({ tab: value === 'overview' ? undefined : (value ?? undefined) }, true)}
        keepMounted={false}
      >
        <Tabs.List mb="md" aria-label={t('parts')} style={{ flexWrap: 'wrap' }}>
          {tabs.map((each) => (
            <Tabs.Tab key={each} value={each}>
              {t(each)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <IsGone.Provider value={isGone}>
          <Tabs.Panel value="overview">
            <OverviewTab subscription={subscription} situation={situation} />
          </Tabs.Panel>
          <Tabs.Panel value="filters">
            <FiltersTab subscription={subscription} tag={tag} />
          </Tabs.Panel>
          <Tabs.Panel value="delivery">
            <DeliveryTab subscription={subscription} tag={tag} />
          </Tabs.Panel>
          <Tabs.Panel value="retries">
            <RetriesTab subscriptionId={id} />
          </Tabs.Panel>
          <Tabs.Panel value="credentials">
            <CredentialsTab subscription={subscription} tag={tag} />
          </Tabs.Panel>
          <Tabs.Panel value="signing">
            <SigningTab subscriptionId={id} />
          </Tabs.Panel>
        </IsGone.Provider>
      </Tabs>
    </>
  );
}

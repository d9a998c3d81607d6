import { Anchor, Group, List, Paper, Skeleton, Stack, Text, Title } from '@mantine/core';
import { AnchorLink, ButtonLink } from '../../parts/links.tsx';
import { apiRoot } from '../../api/client.ts';
import { useRef, useState } from 'react';
import { useFormat } from '../../i18n/format.ts';
import { PageHeader } from '../../parts/page-header.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { SecretOnce } from '../../subscriptions/secret-once.tsx';
import { DeliveriesOf } from '../publish/published.tsx';
import { ChannelStep } from './channel-step.tsx';
import { PublishStep } from './publish-step.tsx';
import { Step, Why, type StepState } from './step.tsx';
import { SubscriptionStep } from './subscription-step.tsx';
import { useWelcomeTexts } from './texts.ts';
import { useProgress } from './use-progress.ts';

/**
 * From an empty installation to a delivered notification: each step is done when the ledger has what it makes, however
 * it came there.
 */
export function WelcomePage() {
  const t = useWelcomeTexts();
  const format = useFormat();
  const { channels, subscriptions, subscriptionCount, notification, delivered, error } = useProgress();
  const [secret, showSecret] = useState<string | null>(null);
  const progress = useRef<HTMLParagraphElement>(null);
  const header = (
    <PageHeader title={t('title')} description={t('description')}>
      <ButtonLink variant="default" to="/overview" search={{ welcome: 'no' }}>
        {t('toOverview')}
      </ButtonLink>
    </PageHeader>
  );
  if (!channels || !subscriptions || notification === undefined || delivered === undefined)
    return (
      <>
        {header}
        {error ? <ProblemAlert error={error} /> : <Skeleton height={420} role="status" aria-label={t('loading')} />}
      </>
    );
  const channel = channels[0];
  const subscription = subscriptions[0];
  const isDone = [channel !== undefined, subscription !== undefined, notification !== null, delivered !== null];
  const current = isDone.indexOf(false);
  const stateOf = (index: number): StepState => (isDone[index] ? 'done' : index === current ? 'current' : 'later');
  const target = subscription?.channels[0]?.channel ?? channel?.name;
  const shown = delivered?.notificationId ?? notification?.id;
  return (
    <>
      {header}
      <Stack gap="md" maw={860}>
        <Text size="sm" fw={600} role="status" ref={progress} tabIndex={-1} style={{ outline: 'none' }}>
          {current < 0 ? t('finished') : t('progress', { done: isDone.filter(Boolean).length, count: isDone.length })}
        </Text>
        <Stack component="ol" gap="sm" m={0} p={0} style={{ listStyle: 'none' }}>
          <Step number={1} title={t('channel')} state={stateOf(0)}>
            {channel ? (
              <Text size="sm">
                {channels.length > 1 ? t('channelsDone', { count: format.number(channels.length) }) : t('channelDone')}{' '}
                <AnchorLink size="sm" underline="always" to="/channels/$id" params={{ id: channel.id }}>
                  {channel.name}
                </AnchorLink>
              </Text>
            ) : (
              <ChannelStep />
            )}
          </Step>
          <Step number={2} title={t('subscription')} state={stateOf(1)}>
            {subscription ? (
              <Text size="sm" className="anywhere">
                {subscriptionCount > 1
                  ? t('subscriptionsDone', { count: format.number(subscriptionCount) })
                  : t('subscriptionDone')}{' '}
                <AnchorLink size="sm" underline="always" to="/subscriptions/$id" params={{ id: subscription.id }}>
                  {subscription.callbackUrl}
                </AnchorLink>
              </Text>
            ) : channel ? (
              <SubscriptionStep channels={channels} onSecret={showSecret} />
            ) : (
              <Why>{t('subscriptionWhy')}</Why>
            )}
          </Step>
          <Step number={3} title={t('publish')} state={stateOf(2)}>
            {notification && (
              <Text size="sm" className="anywhere">
                {t('publishDone')}{' '}
                <AnchorLink
                  size="sm"
                  ff="monospace"
                  underline="always"
                  to="/notifications/$id"
                  params={{ id: notification.id }}
                >
                  {notification.id}
                </AnchorLink>
              </Text>
            )}
            {target !== undefined && subscription && !delivered && <PublishStep channel={target} />}
          </Step>
          <Step number={4} title={t('delivered')} state={stateOf(3)}>
            {shown === undefined ? <Why>{t('deliveredWhy')}</Why> : <DeliveriesOf id={shown} />}
            {delivered && (
              <Group>
                <Why>{t('deliveredDone')}</Why>
                <ButtonLink to="/notifications/$id" params={{ id: delivered.notificationId }}>
                  {t('openNotification')}
                </ButtonLink>
              </Group>
            )}
          </Step>
        </Stack>
        {current < 0 && (
          <Paper withBorder p="md">
            <Title order={2} mb="xs">
              {t('next')}
            </Title>
            <List size="sm" spacing={4}>
              {(['applications', 'subscriptions', 'tail'] as const).map((page) => (
                <List.Item key={page}>
                  <AnchorLink size="sm" to={`/${page}`}>
                    {t(`next${page[0]!.toUpperCase()}${page.slice(1)}` as 'nextTail')}
                  </AnchorLink>
                </List.Item>
              ))}
              <List.Item>
                <Anchor size="sm" href={new URL('docs', apiRoot).href}>
                  {t('nextApi')}
                </Anchor>
              </List.Item>
            </List>
          </Paper>
        )}
      </Stack>
      <SecretOnce
        secret={secret}
        onClose={() => {
          showSecret(null);
          progress.current?.focus();
        }}
      />
    </>
  );
}

import { Badge, Group, ScrollArea, Stack, Table, Text } from '@mantine/core';
import { AnchorLink } from '../parts/links.tsx';
import { useFormat } from '../i18n/format.ts';
import { useActTexts } from './act-texts.ts';
import type { DryRun } from './selection.ts';
import { SubscriptionName } from './subscription-name.tsx';
import { useSelectionTexts } from './texts.ts';

/** The deliveries that a selection means: how many, for whom, and some of them to look at. */
export function DryRunResult({ dryRun }: { dryRun: DryRun }) {
  const t = useActTexts();
  const format = useFormat();
  const { count, isComplete, searchedTo, notifications, bySubscription, sample } = dryRun;
  const shown = format.number(count);
  if (count === 0 && isComplete) return <Text>{t('meansNothing')}</Text>;
  return (
    <Stack gap="sm">
      <Text fw={600}>
        {isComplete
          ? t('means', {
              count,
              shown,
              of: t('notifications', { count: notifications, shown: format.number(notifications) }),
            })
          : t('meansAtLeast', { shown, until: searchedTo ? format.time(searchedTo) : '' })}
      </Text>
      <ScrollArea.Autosize mah={220} type="auto" viewportProps={{ tabIndex: 0, 'aria-label': t('bySubscription') }}>
        <Table verticalSpacing={4} aria-label={t('bySubscription')}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>{t('subscription')}</Table.Th>
              <Table.Th ta="end">{t('count')}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {bySubscription.map(({ subscriptionId, subscription, count: ofIt }) => (
              <Table.Tr key={subscriptionId}>
                <Table.Td>
                  <Group gap="xs">
                    <SubscriptionName id={subscriptionId} />
                    <SubscriptionState state={subscription} />
                  </Group>
                </Table.Td>
                <Table.Td ta="end">{format.number(ofIt)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollArea.Autosize>
      {bySubscription.length === 100 && (
        <Text size="xs" c="dimmed">
          {t('mostOnly')}
        </Text>
      )}
      {sample.length > 0 && (
        <div>
          <Text size="sm" c="dimmed">
            {t('sample')} · {t('sampleHint')}
          </Text>
          <Stack gap={6} mt={4}>
            {sample.slice(0, 5).map(({ notificationId, subscriptionId }) => (
              <AnchorLink
                key={`${notificationId} ${subscriptionId}`}
                size="sm"
                ff="monospace"
                className="anywhere"
                to="/notifications/$id"
                params={{ id: notificationId }}
                target="_blank"
              >
                {notificationId}
              </AnchorLink>
            ))}
          </Stack>
        </div>
      )}
    </Stack>
  );
}

/** Only where it matters for what is sent. */
export function SubscriptionState({ state }: { state: 'active' | 'paused' | 'disabled' | 'deleted' }) {
  const t = useSelectionTexts();
  if (state === 'active') return null;
  return (
    <Badge color={state === 'paused' ? 'orange' : 'red'} variant="light" title={t(`${state}Hint`)}>
      {t(state)}
    </Badge>
  );
}

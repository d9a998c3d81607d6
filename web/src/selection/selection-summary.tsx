import { Group, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { AnchorLink } from '../parts/links.tsx';
import { useFormat } from '../i18n/format.ts';
import { DeliveryStateBadge } from '../parts/delivery-state.tsx';
import { useErrorClassTexts } from '../parts/error-class.ts';
import type { Selection } from './selection.ts';
import { SubscriptionName } from './subscription-name.tsx';
import { useSelectionTexts } from './texts.ts';

/** More subscriptions, or groups, are only counted. */
const mostNamed = 5;

/** A selection in words. */
export function SelectionSummary({ selection }: { selection: Selection }) {
  const t = useSelectionTexts();
  const errorName = useErrorClassTexts();
  const format = useFormat();
  const { subscriptions, channels, acceptedFrom, acceptedTo, states, errorClasses, everythingFor, groups } = selection;
  const rows: [string, ReactNode][] = [];
  if (everythingFor) rows.push([t('everythingFor'), <SubscriptionName id={everythingFor} />]);
  if (subscriptions) rows.push([t('subscriptions'), <Names ids={subscriptions} />]);
  if (groups) {
    const shown = groups.slice(0, mostNamed).map((group) => (
      <Group key={`${group.subscriptionId}${group.state}${group.errorClass}`} gap={6}>
        <SubscriptionName id={group.subscriptionId} />
        <DeliveryStateBadge state={group.state} />
        <Text span size="sm">
          {errorName(group.errorClass)}
        </Text>
      </Group>
    ));
    const more = groups.length - mostNamed;
    rows.push([
      t('groups'),
      <Stack gap={6}>
        {shown}
        {more > 0 && `+ ${t('groupCount', { count: more, shown: format.number(more) })}`}
      </Stack>,
    ]);
  }
  if (selection.notification) {
    const id = selection.notification;
    const link = (
      <AnchorLink inherit ff="monospace" to="/notifications/$id" params={{ id }}>
        {id}
      </AnchorLink>
    );
    rows.push([t('notification'), link]);
  }
  if (selection.deliveries) {
    const count = selection.deliveries.length;
    rows.push([t('deliveries'), t('deliveryCount', { count, shown: format.number(count) })]);
  }
  if (selection.replay) {
    const id = selection.replay;
    const link = (
      <AnchorLink inherit ff="monospace" to="/replays/$id" params={{ id }}>
        {id}
      </AnchorLink>
    );
    rows.push([t('replay'), link]);
  }
  if (channels) rows.push([t('channels'), channels.join(', ')]);
  if (acceptedFrom) rows.push([t('acceptedFrom'), format.time(acceptedFrom)]);
  if (acceptedTo) rows.push([t('acceptedTo'), format.time(acceptedTo)]);
  if (errorClasses) rows.push([t('errors'), errorClasses.map((each) => errorName(each)).join(', ')]);
  if (states)
    rows.push([
      t('states'),
      <Group gap={4}>
        {states.map((state) => (
          <DeliveryStateBadge key={state} state={state} />
        ))}
      </Group>,
    ]);
  if (selection.all) rows.unshift([t('subscriptions'), t('everything')]);
  return <Facts rows={rows} />;
}

function Names({ ids }: { ids: readonly string[] }) {
  return (
    <Stack gap={6}>
      {ids.slice(0, mostNamed).map((id) => (
        <SubscriptionName key={id} id={id} />
      ))}
      {ids.length > mostNamed && <Text size="sm">+ {ids.length - mostNamed}</Text>}
    </Stack>
  );
}

/** Names and values below each other. */
export function Facts({ rows }: { rows: readonly (readonly [string, ReactNode])[] }) {
  return (
    <Stack component="dl" gap={6} m={0}>
      {rows.map(([name, value]) => (
        <Group key={name} gap="sm" align="flex-start">
          <Text component="dt" size="sm" c="dimmed" w={170}>
            {name}
          </Text>
          <Text component="dd" size="sm" m={0} style={{ flex: '1 1 200px', minWidth: 0, overflowWrap: 'anywhere' }}>
            {value}
          </Text>
        </Group>
      ))}
    </Stack>
  );
}

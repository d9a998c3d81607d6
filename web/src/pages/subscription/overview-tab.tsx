import { Alert, Badge, Group, Paper, SimpleGrid, Skeleton, Stack, Table, Text, Title } from '@mantine/core';
import { TbCheck, TbInfoCircle } from 'react-icons/tb';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { CallError, errorPart } from '../../parts/call-error.tsx';
import { englishPart, PartlyEnglish } from '../../parts/in-english.tsx';
import { AnchorLink } from '../../parts/links.tsx';
import { channelsQuery } from '../../parts/catalogue.ts';
import { useFormat } from '../../i18n/format.ts';
import { useErrorMeaning } from '../../parts/plain-error.ts';
import { useRelative } from '../../parts/relative-time.tsx';
import { Volume } from '../../parts/volume.tsx';
import { useMay } from '../../shell/session.tsx';
import { type Situation, type SubscriptionWithHeld } from '../../subscriptions/data.ts';
import { Figures } from './figures.tsx';
import { flowOf, heldBecause } from './flow.ts';
import { useSubscriptionTexts } from './texts.ts';

interface Props {
  subscription: SubscriptionWithHeld;
  situation: Situation | null | undefined;
}

export function OverviewTab({ subscription, situation }: Props) {
  const t = useSubscriptionTexts();
  const may = useMay('operator');
  return (
    <Stack gap="md">
      <WhatKeepsIt subscription={subscription} situation={situation} />
      <Figures subscription={subscription} situation={situation} />
      <Volume
        subject={{ of: 'subscription', id: subscription.id }}
        counts={['delivered', 'failedAttempts', 'gaveUp']}
      />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <WhyHeld subscription={subscription} />
        <Paper withBorder p="md">
          <Title order={3} mb="xs">
            {t('lastFailure')}
          </Title>
          <LastFailure situation={situation} />
        </Paper>
        <Gets subscription={subscription} />
        <Sent subscription={subscription} />
      </SimpleGrid>
      <Group gap="lg">
        <To to="/notifications" search={{ subscription: subscription.id }}>
          {t('notifications')}
        </To>
        <To to="/dead-letters" search={{ subscription: subscription.id }}>
          {t('deadLetters')}
        </To>
        <To to="/audit" search={{ subject: `subscription/${subscription.id}` }}>
          {t('audit')}
        </To>
        {may && (
          <To to="/replays/new" search={{ what: 'unfinished', subscription: subscription.id }}>
            {t('cancelUnfinished')}
          </To>
        )}
      </Group>
    </Stack>
  );
}

function To({ to, search, children }: { to: string; search: Record<string, string>; children: ReactNode }) {
  return (
    <AnchorLink size="sm" to={to} search={search}>
      {children}
    </AnchorLink>
  );
}

function WhatKeepsIt({ subscription, situation }: Props) {
  const { pausedAt, disabledAt, credentials, held } = subscription;
  const t = useSubscriptionTexts();
  const format = useFormat();
  const relative = useRelative();
  const meaningOf = useErrorMeaning();
  const endpoint = situation?.endpoint;
  const halts = [
    disabledAt !== null && t('isDisabled', { since: relative(disabledAt) }),
    pausedAt !== null && t('isPaused', { since: relative(pausedAt) }),
    credentials.unreadable !== null && t('isUnreadable', { reason: englishPart(credentials.unreadable) }),
    endpoint &&
      t('isParked', {
        address: endpoint.address,
        since: format.time(endpoint.openedAt),
        reason: errorPart(endpoint.reason),
        probe:
          Date.parse(endpoint.nextProbeAt) > Date.now()
            ? t('probeAt', { at: relative(endpoint.nextProbeAt) })
            : t('probeWithNext'),
      }),
    held.isDropping && t('isDropping'),
  ].filter((each) => typeof each === 'string');
  const reasons = [...halts, ...heldBecause(subscription, situation).map((reason) => t(reason))];
  const flow = flowOf(subscription, situation);
  const failure = situation?.lastFailure;
  if (reasons.length === 0 && flow === 'unknown') return <Skeleton height={48} />;
  if (reasons.length === 0 && flow === 'waits' && situation && failure) {
    const said =
      failure.error === null ? `HTTP ${failure.status}` : (meaningOf(failure.error) ?? errorPart(failure.error));
    return (
      <Alert variant="light" color="yellow" icon={<TbInfoCircle aria-hidden />}>
        <Text size="sm" className="anywhere">
          <PartlyEnglish>{t('runsAndWaits', { count: situation.waiting, error: said })}</PartlyEnglish>
        </Text>
      </Alert>
    );
  }
  if (reasons.length === 0)
    return (
      <Alert variant="light" color="green" icon={<TbCheck aria-hidden />}>
        <Text size="sm">{t('runs')}</Text>
      </Alert>
    );
  return (
    <Alert
      variant="light"
      color={halts.length > 0 ? 'orange' : 'yellow'}
      icon={<TbInfoCircle aria-hidden />}
      title={t('atEnd')}
    >
      <Stack gap={4}>
        {reasons.map((reason) => (
          <Text key={reason} size="sm" className="anywhere">
            <PartlyEnglish>{reason}</PartlyEnglish>
          </Text>
        ))}
      </Stack>
    </Alert>
  );
}

function WhyHeld({ subscription: { held } }: Pick<Props, 'subscription'>) {
  const t = useSubscriptionTexts();
  const format = useFormat();
  const reasons = Object.entries(held.byReason);
  if (reasons.length === 0) return null;
  return (
    <Paper withBorder p="md">
      <Title order={3} mb="xs">
        {t('heldWhy')}
      </Title>
      <Table fz="sm" aria-label={t('heldWhy')}>
        <Table.Tbody>
          {reasons.map(([reason, count]) => (
            <Table.Tr key={reason}>
              <Table.Td w={90} style={{ fontVariantNumeric: 'tabular-nums' }}>
                {format.number(count)}
              </Table.Td>
              <Table.Td>{t(reason === 'paused' ? 'pausedWhy' : (reason as 'rate'))}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Paper>
  );
}

function LastFailure({ situation }: Pick<Props, 'situation'>) {
  const t = useSubscriptionTexts();
  const relative = useRelative();
  const failure = situation?.lastFailure;
  if (!failure)
    return (
      <Text size="sm" c="dimmed">
        {situation ? t('noFailure') : '–'}
      </Text>
    );
  return (
    <>
      <Text size="sm" className="anywhere">
        {failure.error === null ? `HTTP ${failure.status}` : <CallError error={failure.error} />}
      </Text>
      <AnchorLink size="sm" to={`/notifications/${failure.notificationId}`}>
        {t('failureOf', { at: relative(failure.acceptedAt) })}
      </AnchorLink>
    </>
  );
}

function Gets({ subscription: { channels } }: Pick<Props, 'subscription'>) {
  const t = useSubscriptionTexts();
  const { data: known = [] } = useQuery(channelsQuery);
  const to = (name: string) => {
    const id = known.find((channel) => channel.name === name)?.id;
    return id === undefined ? '/channels' : `/channels/${id}`;
  };
  return (
    <Paper withBorder p="md">
      <Title order={3} mb="xs">
        {t('gets')}
      </Title>
      {channels.length === 0 && (
        <Text size="sm" c="dimmed">
          {t('nothing')}
        </Text>
      )}
      <Stack gap={6}>
        {channels.map(({ channel, filters }, index) => (
          <Group key={index} gap={6}>
            <AnchorLink size="sm" className="anywhere" to={to(channel)}>
              {channel}
            </AnchorLink>
            {Object.keys(filters).length === 0 && (
              <Text size="sm" c="dimmed">
                {t('everything')}
              </Text>
            )}
            {Object.entries(filters).map(([name, value]) => (
              <Badge key={name} variant="default" fw={400} maw="100%">
                {name}: {value}
              </Badge>
            ))}
          </Group>
        ))}
      </Stack>
    </Paper>
  );
}

function Sent({ subscription }: Pick<Props, 'subscription'>) {
  const t = useSubscriptionTexts();
  const format = useFormat();
  const { ratePerSecond, maxConcurrency, timeoutSeconds, ordering, effectiveGuarantee, alertEmail } = subscription;
  const number = (value: number | null, none: string) => (value === null ? none : format.number(value));
  const rows = [
    [t('ratePerSecond'), number(ratePerSecond, t('noLimit'))],
    [t('maxConcurrency'), number(maxConcurrency, t('asEndpointGets'))],
    [t('timeoutSeconds'), number(timeoutSeconds, t('asInstallation'))],
    [t('ordering'), t(ordering)],
    [t('deliveryGuarantee'), t(effectiveGuarantee)],
    [t('alertEmail'), alertEmail ?? t('asOfApplication')],
  ] as const;
  return (
    <Paper withBorder p="md">
      <Title order={3} mb="xs">
        {t('sent')}
      </Title>
      <Table fz="sm" aria-label={t('sent')}>
        <Table.Tbody>
          {rows.map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row" fw={400} c="dimmed">
                {name}
              </Table.Th>
              <Table.Td className="anywhere">{value}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Paper>
  );
}

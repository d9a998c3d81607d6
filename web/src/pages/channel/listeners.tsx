import { Anchor, Badge, Group, Paper, Skeleton, Stack, Text, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { useSubscriptionsOf } from '../../parts/subscriptions.ts';
import { useMay } from '../../shell/session.tsx';
import { useChannelTexts } from '../channels/texts.ts';

/** More are counted, and listed on their own page. */
const most = 20;

/** The subscriptions that get what is published on a channel, with what they want of it. */
export function Listeners({ name }: { name: string }) {
  const t = useChannelTexts();
  const { data, error, refetch } = useSubscriptionsOf({ channel: name }, most);
  const may = useMay('administrator');
  const count = data?.count ?? 0;
  return (
    <Paper withBorder p="md">
      <Group justify="space-between" mb="sm">
        <Title order={2}>{t('listeners')}</Title>
        {data && count > 0 && (
          <Anchor component={Link} to="/subscriptions" search={{ channel: name } as never} size="sm">
            {t('listenersOf', { count })}
          </Anchor>
        )}
      </Group>
      {error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Skeleton height={120} />}
      {data && count === 0 && (
        <Text size="sm" c="dimmed">
          {t('noListeners')}{' '}
          {may && (
            <Anchor component={Link} to="/subscriptions" search={{ new: '1', on: name } as never} size="sm">
              {t('makeListener')}
            </Anchor>
          )}
        </Text>
      )}
      <Stack gap="xs">
        {data?.subscriptions.map(({ id, callbackUrl, ownerClientId, channels, pausedAt, disabledAt }) => (
          <div key={id} style={{ minWidth: 0 }}>
            <Group gap="xs" wrap="nowrap">
              <Anchor component={Link} to="/subscriptions/$id" params={{ id } as never} size="sm" truncate>
                {callbackUrl}
              </Anchor>
              {pausedAt !== null && (
                <Badge color="orange" variant="light" style={{ flexShrink: 0 }}>
                  {t('paused')}
                </Badge>
              )}
              {disabledAt !== null && (
                <Badge color="red" variant="light" style={{ flexShrink: 0 }}>
                  {t('disabled')}
                </Badge>
              )}
            </Group>
            <Text size="xs" c="dimmed" className="anywhere">
              {ownerClientId} ·{' '}
              {channels
                .filter(({ channel }) => channel === name)
                .map(({ filters }) => wantedOf(filters) || t('everything'))
                .join(' | ')}
            </Text>
          </div>
        ))}
      </Stack>
    </Paper>
  );
}

const wantedOf = (filters: Record<string, string>): string =>
  Object.entries(filters)
    .map(([name, value]) => `${name} = ${value}`)
    .join(', ');

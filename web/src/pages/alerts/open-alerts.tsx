import { Button, Paper, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { EmptyState } from '../../parts/empty-state.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { AlertDescription } from './alert-description.tsx';
import { readAlerts } from './alerts.ts';
import { useAlertTexts } from './texts.ts';

/** What is wrong now. */
export function OpenAlerts() {
  const t = useAlertTexts();
  const [, set] = useUrlState();
  const { data, error, refetch } = useQuery({
    queryKey: ['alerts', 'open'],
    queryFn: ({ signal }) => readAlerts('open', {}, undefined, signal),
    refetchInterval: 5_000,
  });
  if (error && !data) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton height={160} radius="md" />;
  if (data.alerts.length === 0)
    return (
      <EmptyState
        title={t('nothingOpen')}
        action={
          <Button variant="default" onClick={() => set({ tab: 'past' }, true)}>
            {t('toHistory')}
          </Button>
        }
      >
        {t('nothingOpenDetail')}
      </EmptyState>
    );
  return (
    <Stack gap="sm">
      {error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
      {data.alerts.map((alert) => (
        <Paper key={alert.id} withBorder p="md">
          <AlertDescription alert={alert} />
        </Paper>
      ))}
      {data.nextCursor !== null && <Text size="sm">{t('moreOpen', { count: data.alerts.length })}</Text>}
    </Stack>
  );
}

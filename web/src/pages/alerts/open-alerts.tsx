import { Button, Group, Paper, Skeleton, Stack } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { BusyButton } from '../../parts/busy-button.tsx';
import { EmptyState } from '../../parts/empty-state.tsx';
import { tryAgain } from '../../parts/next-page.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { useUrlState } from '../../parts/url-state.ts';
import { AlertDescription } from './alert-description.tsx';
import { readAlerts } from './alerts.ts';
import { useAlertTexts } from './texts.ts';

const everyMs = 5_000;
/** Every page that was read is read again. */
const seldomMs = 60_000;

/** The alerts that are open now. */
export function OpenAlerts() {
  const t = useAlertTexts();
  const [, set] = useUrlState();
  const query = useInfiniteQuery({
    queryKey: ['alerts', 'open'],
    queryFn: ({ pageParam, signal }) => readAlerts('open', {}, pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: ({ state: { data } }) => ((data?.pages.length ?? 0) > 1 ? seldomMs : everyMs),
  });
  const problem = query.error && <ProblemAlert error={query.error} onRetry={tryAgain(query)} />;
  if (!query.data) return problem ?? <Skeleton height={160} radius="md" />;
  const alerts = query.data.pages.flatMap((page) => page.alerts);
  return (
    <Stack gap="sm">
      {problem}
      {alerts.length === 0 && (
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
      )}
      {alerts.map((alert) => (
        <Paper key={alert.id} withBorder p="md">
          <AlertDescription alert={alert} />
        </Paper>
      ))}
      {query.hasNextPage && (
        <Group>
          <BusyButton variant="default" isBusy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            {t('moreOpen')}
          </BusyButton>
        </Group>
      )}
    </Stack>
  );
}

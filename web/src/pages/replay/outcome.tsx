import { Alert, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { TbInfoCircle } from 'react-icons/tb';
import { useQuery } from '@tanstack/react-query';
import { AnchorLink } from '../../parts/links.tsx';
import { answerOf, api } from '../../api/client.ts';
import { useFormat } from '../../i18n/format.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { Facts } from '../../selection/selection-summary.tsx';
import { deadLettersOf, type Replay } from '../../selection/selection.ts';
import { groupsKey, countedSeldomMs } from '../dead-letters/use-dead-letters.ts';
import { useReplayTexts } from './texts.ts';

/** The outcome of a replay: deliveries passed over and why, and those that failed again. */
export function Outcome({ work }: { work: Replay }) {
  const t = useReplayTexts();
  const format = useFormat();
  const reasons = (['changed', 'subscriptionDisabled', 'subscriptionDeleted', 'bodyErased'] as const).filter(
    (reason) => work.skipped[reason] > 0,
  );
  const stopped = work.stoppedBecause;
  const deadLetters = work.kind === 'cancel' ? undefined : deadLettersOf(work.selection);
  return (
    <Paper withBorder p="md">
      <Stack gap="sm">
        <Title order={2}>{t('counts')}</Title>
        {stopped !== null && (
          <Alert color="orange" variant="light" icon={<TbInfoCircle aria-hidden />}>
            {t(
              stopped === 'stop-time'
                ? 'stoppedStopTime'
                : stopped === 'subscription-deleted'
                  ? 'stoppedDeleted'
                  : 'stoppedDisabled',
            )}
          </Alert>
        )}
        {work.kind === 'replay' && <FailedAgain work={work} />}
        {reasons.length > 0 && (
          <div>
            <Text size="sm" c="dimmed" mb={4}>
              {t('reasons')}
            </Text>
            <Facts rows={reasons.map((reason) => [t(reason), format.number(work.skipped[reason])] as const)} />
          </div>
        )}
        <Stack gap={6}>
          <AnchorLink size="sm" to="/notifications" search={{ replay: work.id }}>
            {t(work.kind === 'replay' ? 'deliveries' : 'deliveriesEnded')}
          </AnchorLink>
          {deadLetters && (
            <AnchorLink size="sm" to="/dead-letters" search={deadLetters}>
              {t('leftLink')}
            </AnchorLink>
          )}
        </Stack>
      </Stack>
    </Paper>
  );
}

/** Most of what was sent ends soon after the replay; a retry may fail long after it. */
function lookAgainMs({ endedAt }: Replay): number {
  // The browser's clock may differ from that of Heraut.
  const sinceMs = endedAt === null ? 5_000 : Math.abs(Date.now() - Date.parse(endedAt));
  return Math.min(Math.max(sinceMs, 2_000), 30_000);
}

function FailedAgain({ work }: { work: Replay }) {
  const t = useReplayTexts();
  const format = useFormat();
  const query = { replay: work.id };
  const { data, error, refetch } = useQuery({
    queryKey: [...groupsKey, query],
    queryFn: ({ signal }) => answerOf(api.GET('/admin/v1/dead-letters', { params: { query }, signal })),
    refetchInterval: ({ state }) => (state.data && !state.data.isComplete ? countedSeldomMs : lookAgainMs(work)),
  });
  const shown = data ? format.number(data.count) : '…';
  return (
    <>
      {error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
      <Facts
        rows={[
          [
            t('failedAgain'),
            data?.count === 0 && data.isComplete ? (
              t('failedAgainNone')
            ) : (
              <Group gap="xs">
                <Text span size="sm" fw={600}>
                  {data && !data.isComplete ? t('leftAtLeast', { count: shown }) : shown}
                </Text>
                <AnchorLink size="sm" to="/dead-letters" search={{ replay: work.id }}>
                  {t('look')}
                </AnchorLink>
              </Group>
            ),
          ],
        ]}
      />
    </>
  );
}

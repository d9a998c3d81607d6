import { Group, Paper, SimpleGrid, Skeleton, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { useFormat } from '../../i18n/format.ts';
import type { Replay } from '../../selection/selection.ts';
import { isUnfinished, leftOf, useProgressText, WorkProgress } from '../../selection/work.tsx';
import { useReplayTexts } from './texts.ts';
import { usePace } from './use-pace.ts';

/** How far it is, how fast it goes, and when it will end. */
export function ProgressPanel({ work, updatedAt }: { work: Replay | undefined; updatedAt: number }) {
  const pace = usePace(work, updatedAt);
  if (!work)
    return (
      <Paper withBorder p="md" h={150} aria-hidden>
        <Skeleton height={20} mb="lg" />
        <Skeleton height={40} w="70%" />
      </Paper>
    );
  return <Progressing work={work} pace={pace} />;
}

function Progressing({ work, pace }: { work: Replay; pace: number | undefined }) {
  const t = useReplayTexts();
  const format = useFormat();
  const text = useProgressText(work);
  const left = leftOf(work);
  const skipped = Object.values(work.skipped).reduce((sum, each) => sum + each, 0);
  const isRunning = work.state === 'running';
  const rate = (value: number) => (value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
  const paceText = isRunning && pace !== undefined ? t('perSecond', { rate: format.number(rate(pace)) }) : undefined;
  const most = work.ratePerSecond === null ? undefined : t('atMost', { rate: format.number(work.ratePerSecond) });
  return (
    <Paper withBorder p="md">
      <Group justify="space-between" mb={6}>
        <Text size="sm" fw={600}>
          {text}
        </Text>
        <Text size="sm" c="dimmed">
          <EndText work={work} pace={pace} />
        </Text>
      </Group>
      <WorkProgress work={work} size="xl" />
      <SimpleGrid cols={{ base: 2, sm: 4 }} mt="md" aria-label={t('counts')} role="group">
        <Figure name={t(work.kind === 'replay' ? 'doneReplay' : work.kind === 'close' ? 'doneClose' : 'doneCancel')}>
          {format.number(work.done)}
        </Figure>
        <Figure name={t('skipped')}>{format.number(skipped)}</Figure>
        <Figure name={t('left')}>
          {isUnfinished(work) && !work.isCountComplete
            ? t('leftAtLeast', { count: format.number(left) })
            : format.number(work.state === 'done' ? 0 : left)}
        </Figure>
        <Figure name={t('pace')} hint={paceText === undefined ? undefined : most}>
          {paceText ?? (isRunning ? (most ?? '…') : '–')}
        </Figure>
      </SimpleGrid>
    </Paper>
  );
}

function Figure({ name, hint, children }: { name: string; hint?: string; children: ReactNode }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {name}
      </Text>
      <Text size="lg" fw={600} style={{ fontVariantNumeric: 'tabular-nums' }}>
        {children}
      </Text>
      {hint !== undefined && (
        <Text size="xs" c="dimmed">
          {hint}
        </Text>
      )}
    </div>
  );
}

function EndText({ work, pace }: { work: Replay; pace: number | undefined }) {
  const t = useReplayTexts();
  const format = useFormat();
  if (work.endedAt) return <>{t('ended', { at: format.relative(work.endedAt) })}</>;
  if (work.state === 'scheduled' && work.startAt) return <>{t('startsAt', { at: format.relative(work.startAt) })}</>;
  if (work.state !== 'running') return null;
  const left = leftOf(work);
  const expected = pace ?? work.ratePerSecond ?? undefined;
  if (left === 0 || expected === undefined) return null;
  if (expected === 0) return <>{t('notMoving')}</>;
  const ms = (left / expected) * 1000;
  return (
    <span title={format.time(Date.now() + ms)}>
      {t('ends')} {t('endsIn', { time: format.duration(ms) })}
    </span>
  );
}

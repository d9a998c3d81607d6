import { Paper, SimpleGrid, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { AnchorLink } from '../../parts/links.tsx';
import { useFormat } from '../../i18n/format.ts';
import { sumOf, useActivity } from '../../parts/activity.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { useRelative } from '../../parts/relative-time.tsx';
import type { Situation, SubscriptionWithHeld } from '../../subscriptions/data.ts';
import { heldApart, weekBefore } from './flow.ts';
import { useSubscriptionTexts } from './texts.ts';

/** More are not counted. */
const mostHeld = 10_000;
const mostCounted = 1_000;

interface Props {
  subscription: SubscriptionWithHeld;
  situation: Situation | null | undefined;
}

/** How many deliveries are where, and how many arrived. */
export function Figures({ subscription: { id, held }, situation }: Props) {
  const t = useSubscriptionTexts();
  const format = useFormat();
  const relative = useRelative();
  const { data: activity, error, refetch } = useActivity({ of: 'subscription', id }, '24h');
  const totals = activity && sumOf(activity.buckets);
  const counted = (count: number | undefined) =>
    count === undefined ? '–' : count >= mostCounted ? `≥ ${format.number(mostCounted)}` : format.number(count);
  const { count: heldCount, oldestAt, inLine } = heldApart({ held }, situation);
  const since = { acceptedFrom: weekBefore(Date.now()) };
  const ended = totals ? totals.delivered + totals.gaveUp : 0;
  return (
    <>
      {error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
      <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
        <Figure
          name={t('held')}
          value={held.count >= mostHeld ? `≥ ${format.number(heldCount)}` : format.number(heldCount)}
          to="/notifications"
          search={{ subscription: id, state: 'held' }}
        >
          {oldestAt !== null && t('heldHelp', { at: relative(oldestAt) })}{' '}
          {inLine > 0 && t('heldInLine', { count: inLine, shown: format.number(inLine) })}
        </Figure>
        <Figure
          name={t('waiting')}
          value={counted(situation?.waiting)}
          to="/notifications"
          search={{ subscription: id, state: 'waiting', ...since }}
        >
          {t('waitingHelp')}
        </Figure>
        <Figure
          name={t('dead')}
          value={counted(situation?.dead)}
          to="/dead-letters"
          search={{ subscription: id, ...since }}
        >
          {t('deadHelp')}
        </Figure>
        <Figure
          name={t('success')}
          value={totals && ended > 0 ? format.percent(totals.delivered / ended) : '–'}
          to="/notifications"
          search={{ subscription: id }}
        >
          {totals &&
            (totals.delivered + totals.gaveUp + totals.failedAttempts > 0
              ? t('successHelp', {
                  delivered: totals.delivered,
                  gaveUp: totals.gaveUp,
                  failed: totals.failedAttempts,
                })
              : t('successNone'))}
        </Figure>
      </SimpleGrid>
    </>
  );
}

interface FigureProps {
  name: string;
  value: string;
  to: string;
  search: Record<string, string>;
  children: ReactNode;
}

/** A number that leads to what it counts. */
function Figure({ name, value, to, search, children }: FigureProps) {
  return (
    <Paper withBorder p="md">
      <Text size="sm" c="dimmed">
        {name}
      </Text>
      <AnchorLink
        fz={24}
        fw={600}
        lh={1.4}
        style={{ fontVariantNumeric: 'tabular-nums' }}
        aria-label={`${name}: ${value}`}
        to={to}
        search={search}
      >
        {value}
      </AnchorLink>
      <Text size="xs" c="dimmed" mih={18}>
        {children}
      </Text>
    </Paper>
  );
}

import { Group, Paper, SimpleGrid, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { AnchorLink } from '../../parts/links.tsx';
import { useFormat } from '../../i18n/format.ts';
import { RelativeTime } from '../../parts/relative-time.tsx';
import { Sparkline } from '../../parts/sparkline.tsx';
import classes from './overview.module.css';
import { useOverviewTexts } from './texts.ts';
import type { Overview } from './verdict.ts';

interface Target {
  to: string;
  search?: Record<string, string>;
}

interface TileProps extends Target {
  title: string;
  /** The number. */
  value: string;
  /** Behind it. */
  unit?: string;
  /** How the number is to be read, for those who point at it. */
  hint?: string;
  children?: ReactNode;
  chart?: ReactNode;
}

/** One number, which leads to what it counts. Its size does not depend on the number. */
function Tile({ title, value, unit, hint, to, search, children, chart }: TileProps) {
  return (
    <Paper withBorder p="sm" className={classes.tile}>
      <Text size="sm" c="dimmed">
        {title}
      </Text>
      <AnchorLink
        c="inherit"
        className={classes.number}
        title={hint}
        aria-label={`${title}: ${value} ${unit ?? ''}`}
        to={to}
        search={search ?? {}}
      >
        {value}
        {unit && (
          <Text span size="sm" c="dimmed" fw={400} ml={6}>
            {unit}
          </Text>
        )}
      </AnchorLink>
      <Text size="sm" component="div">
        {children}
      </Text>
      {chart && <div className={classes.chart}>{chart}</div>}
    </Paper>
  );
}

/** A number within a tile that has several. */
function Part({
  value,
  label,
  to,
  search,
  hint,
}: Target & { value: string; label: string; hint?: string | undefined }) {
  return (
    <AnchorLink inherit c="inherit" title={hint} className={classes.part} to={to} search={search ?? {}}>
      <Text span inherit fw={600} style={{ fontVariantNumeric: 'tabular-nums' }}>
        {value}
      </Text>{' '}
      {label}
    </AnchorLink>
  );
}

const columns = { base: 1, xs: 2, lg: 4 };

/** Counts of accepted and delivered, now and in the last hour. */
export function Throughput({ overview: { activity } }: { overview: Overview }) {
  const t = useOverviewTexts();
  const format = useFormat();
  const minute = activity?.lastMinute;
  const recent = activity?.lastMinutes;
  const hour = activity?.lastHour ?? [];
  // Two decimals say enough, and what is not nothing must not look like it.
  const rate = (value: number) =>
    value >= 10 ? format.short(value) : format.number(value > 0 ? Math.max(0.01, Math.round(value * 100) / 100) : 0);
  const perSecond = (count: number | undefined) => (minute && count !== undefined ? rate(count / minute.seconds) : '–');
  // Where it could not be read, it is not nothing.
  const sum = (name: 'accepted' | 'delivered' | 'failedAttempts') =>
    activity ? format.number(hour.reduce((total, bucket) => total + bucket[name], 0)) : '–';
  const spark = (
    name: 'accepted' | 'delivered' | 'failedAttempts',
    key: 'sparkAccepted' | 'sparkDelivered' | 'sparkFailed',
  ) => {
    // The last minute is not over: it would always look like a fall.
    const values = hour.slice(0, -1).map((bucket) => bucket[name]);
    return <Sparkline values={values} label={t(key, { most: format.number(Math.max(0, ...values)) })} height={32} />;
  };
  const half = recent?.deliveryP50Ms ?? null;
  const nearlyAll = recent?.deliveryP95Ms ?? null;
  return (
    <>
      <SimpleGrid cols={columns}>
        <Tile
          title={t('accepted')}
          value={perSecond(minute?.accepted)}
          unit={t('perSecond')}
          to="/notifications"
          chart={spark('accepted', 'sparkAccepted')}
        >
          {t('lastHour', { shown: sum('accepted') })}
        </Tile>
        <Tile
          title={t('delivered')}
          value={perSecond(minute?.delivered)}
          unit={t('perSecond')}
          to="/notifications"
          search={{ state: 'delivered' }}
          chart={spark('delivered', 'sparkDelivered')}
        >
          {t('lastHour', { shown: sum('delivered') })}
        </Tile>
        <Tile
          title={t('success')}
          value={typeof recent?.successRate === 'number' ? format.percent(recent.successRate) : '–'}
          to="/subscriptions"
          chart={spark('failedAttempts', 'sparkFailed')}
        >
          {recent?.successRate === null ? t('noCalls') : t('failedCalls', { shown: sum('failedAttempts') })}
        </Tile>
        <Tile
          title={t('took')}
          value={half === null ? '–' : format.duration(half)}
          to="/notifications"
          search={{ state: 'delivered' }}
        >
          {half === null || nearlyAll === null ? (
            activity && t('noneDelivered')
          ) : (
            <>
              {t('half')}
              <br />
              {t('p95', { time: format.duration(nearlyAll) })}
            </>
          )}
        </Tile>
      </SimpleGrid>
      <Text size="xs" c="dimmed" mt={6}>
        {t('countedUntil')} {activity ? <RelativeTime at={activity.countedUntil} /> : '–'}
      </Text>
    </>
  );
}

/** Deliveries that are not delivered, and why. */
export function Waiting({ overview }: { overview: Overview }) {
  const t = useOverviewTexts();
  const format = useFormat();
  const { backlog, deadLetters, endpoints, subscriptions } = overview;
  // An api process of the version before, beside which this console may run for a moment, does not say it.
  const { haltedCount }: { haltedCount?: number } = subscriptions;
  const counted = ({ count, isEstimate }: { count: number; isEstimate: boolean }) =>
    `${isEstimate ? '≈ ' : ''}${format.short(count)}`;
  const hint = ({ count, isEstimate }: { count: number; isEstimate: boolean }) =>
    isEstimate ? t('estimated', { shown: format.number(count) }) : undefined;
  const add = (counts: { count: number; isEstimate: boolean }[]) => ({
    count: counts.reduce((sum, { count }) => sum + count, 0),
    isEstimate: counts.some(({ isEstimate }) => isEstimate),
  });
  const held = backlog && add(Object.values(backlog.held));
  const states = backlog &&
    held && { queued: backlog.queued, sending: backlog.sending, waiting: backlog.waiting, held };
  const all = states && add(Object.values(states));
  const dead = deadLetters && {
    failed: deadLetters.failed,
    expired: deadLetters.expired,
    unknown: deadLetters.unknown,
  };
  const allDead = dead && add(Object.values(dead));
  return (
    <>
      <SimpleGrid cols={columns}>
        <Tile
          title={t('backlog')}
          value={all ? counted(all) : '–'}
          {...(all && hint(all) ? { hint: hint(all)! } : {})}
          // Of several states: no list is of these alone, and each of them has its own below.
          to="/notifications"
        >
          <Group gap="xs" style={{ rowGap: 0 }}>
            {states &&
              Object.entries(states).map(([state, each]) => (
                <Part
                  key={state}
                  value={counted(each)}
                  hint={hint(each)}
                  label={t(stateTexts[state as keyof typeof stateTexts])}
                  to="/notifications"
                  search={{ state }}
                />
              ))}
          </Group>
          {backlog &&
            (backlog.oldestDueAt ? t('oldestDue', { since: format.relative(backlog.oldestDueAt) }) : t('nothingDue'))}
        </Tile>
        <Tile
          title={t('deadLettersTile')}
          value={allDead ? counted(allDead) : '–'}
          {...(allDead && hint(allDead) ? { hint: hint(allDead)! } : {})}
          to="/dead-letters"
        >
          <Group gap="xs" style={{ rowGap: 0 }}>
            {dead &&
              Object.entries(dead).map(([state, each]) => (
                <Part
                  key={state}
                  value={counted(each)}
                  hint={hint(each)}
                  label={t(state as keyof typeof dead)}
                  to="/dead-letters"
                  search={{ state }}
                />
              ))}
          </Group>
        </Tile>
        <Tile title={t('endpointsTile')} value={format.number(endpoints.openCount)} to="/endpoints">
          {endpoints.longest[0]
            ? t('longest', { since: format.relative(endpoints.longest[0].openedAt) })
            : t('allAnswer')}
        </Tile>
        <Tile
          title={t('haltedTile')}
          value={format.number(haltedCount ?? subscriptions.paused.count + subscriptions.disabled.count)}
          unit={t('ofSubscriptions', { count: subscriptions.count, shown: format.number(subscriptions.count) })}
          to="/subscriptions"
        >
          <Group gap="xs" style={{ rowGap: 0 }}>
            <Part
              value={format.number(subscriptions.paused.count)}
              label={t('pausedTile')}
              to="/subscriptions"
              search={{ state: 'paused' }}
            />
            <Part
              value={format.number(subscriptions.disabled.count)}
              label={t('disabledTile')}
              to="/subscriptions"
              search={{ state: 'disabled' }}
            />
          </Group>
        </Tile>
      </SimpleGrid>
      <Text size="xs" c="dimmed" mt={6}>
        {backlog ? (
          <>
            {t('measured')} <RelativeTime at={backlog.measuredAt} />
          </>
        ) : (
          t('notMeasuredYet')
        )}
      </Text>
    </>
  );
}

const stateTexts = { queued: 'queued', sending: 'sending', waiting: 'waitingState', held: 'held' } as const;

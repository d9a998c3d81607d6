import { Badge, Group, Paper, SimpleGrid, Text, Title } from '@mantine/core';
import { TbCheck, TbX } from 'react-icons/tb';
import type { ReactNode } from 'react';
import { AnchorLink } from '../../parts/links.tsx';
import { useFormat } from '../../i18n/format.ts';
import { RelativeTime } from '../../parts/relative-time.tsx';
import classes from './overview.module.css';
import { useOverviewTexts, usePartName } from './texts.ts';
import type { Overview } from './verdict.ts';

interface PanelProps {
  title: string;
  /** Where all of them are. */
  to: string;
  search?: Record<string, string>;
  /** The text that is shown where there is none. */
  none: string;
  /** undefined: it is not known what there is. */
  children: ReactNode[] | undefined;
}

/** The few that matter most; the page behind it has all. */
function Panel({ title, to, search, none, children }: PanelProps) {
  const t = useOverviewTexts();
  return (
    <Paper withBorder p="sm" component="section" className={classes.details} aria-label={title}>
      <Group justify="space-between" mb={4} wrap="nowrap">
        <Title order={2} size="h3">
          {title}
        </Title>
        <AnchorLink
          size="sm"
          style={{ whiteSpace: 'nowrap' }}
          aria-label={`${t('seeAll')}: ${title}`}
          to={to}
          search={search ?? {}}
        >
          {t('seeAll')}
        </AnchorLink>
      </Group>
      {children !== undefined && children.length > 0 ? (
        <ul className={classes.list}>{children}</ul>
      ) : (
        <Text size="sm" c="dimmed" mih={60}>
          {children === undefined ? t('notKnown') : none}
        </Text>
      )}
    </Paper>
  );
}

export function Details({ overview }: { overview: Overview }) {
  const t = useOverviewTexts();
  const format = useFormat();
  const { endpoints, subscriptions, alerts, replays } = overview;
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Panel title={t('openEndpoints')} to="/endpoints" none={t('noEndpoints')}>
        {endpoints.longest.map(({ address, reason, openedAt, nextProbeAt }) => (
          <li key={address} className={classes.line}>
            <div>
              <Text size="sm">
                <AnchorLink inherit to="/endpoints" search={{ q: address }}>
                  {address}
                </AnchorLink>
              </Text>
              <Text size="xs" c="dimmed" lang="en">
                {reason}
              </Text>
            </div>
            <div>
              <Text size="sm">
                <RelativeTime at={openedAt} />
              </Text>
              <Text size="xs" c="dimmed">
                {Date.parse(nextProbeAt) > Date.now()
                  ? t('nextProbe', { at: format.relative(nextProbeAt) })
                  : t('probeWithNext')}
              </Text>
            </div>
          </li>
        ))}
      </Panel>
      <Panel title={t('troubled')} to="/subscriptions" none={t('noTroubled')}>
        {subscriptions.troubled?.most.map(({ id, receiver, unsent, dead }) => (
          <li key={id} className={classes.line}>
            <div>
              <AnchorLink size="sm" to={`/subscriptions/${id}`}>
                {receiver}
              </AnchorLink>
              <Text size="xs" c="dimmed">
                {id}
              </Text>
            </div>
            <Text size="sm" component="div">
              <AnchorLink
                inherit
                c="inherit"
                className={classes.part}
                // Waiting and held: its page has both, a list of notifications one of them.
                to={`/subscriptions/${id}`}
              >
                {format.number(unsent)}
                {unsent >= 1000 ? '+' : ''} {t('unsent')}
              </AnchorLink>
              <br />
              <AnchorLink inherit c="inherit" className={classes.part} to="/dead-letters" search={{ subscription: id }}>
                {format.number(dead)}
                {dead >= 1000 ? '+' : ''} {t('dead')}
              </AnchorLink>
            </Text>
          </li>
        ))}
      </Panel>
      <Panel title={t('openAlerts')} to="/alerts" none={t('noAlerts')}>
        {alerts?.latest.map(({ id, title, what, since }) => (
          <li key={id} className={classes.line}>
            <div>
              <Text size="sm" fw={500} lang="en">
                {title}
              </Text>
              <Text size="xs" c="dimmed" lineClamp={2} lang="en">
                {what}
              </Text>
            </div>
            <Text size="sm">
              <RelativeTime at={since} />
            </Text>
          </li>
        ))}
      </Panel>
      <Panel title={t('replays')} to="/replays" none={t('noReplays')}>
        {replays?.map(({ kind, state, replays: count, done, left }) => (
          <li key={`${kind} ${state}`} className={classes.line}>
            <Text size="sm">
              {format.number(count)} × {t(`kind-${kind}`)}, {t(`state-${state}`)}
            </Text>
            <Text size="sm">{t('replayProgress', { done: format.number(done), left: format.number(left) })}</Text>
          </li>
        ))}
      </Panel>
    </SimpleGrid>
  );
}

/** Each part of Heraut as the process that answers finds it, and every process. */
export function Parts({ overview: { health, processes } }: { overview: Overview }) {
  const t = useOverviewTexts();
  const format = useFormat();
  const partName = usePartName();
  return (
    <Panel title={t('parts')} to="/settings" search={{ tab: 'installation' }} none="">
      {[
        <li key="parts">
          <Group gap={6}>
            {health.parts.map(({ name, status, error }) => (
              <Badge
                key={name}
                color={status === 'up' ? 'green' : 'red'}
                variant="light"
                title={error ?? undefined}
                leftSection={status === 'up' ? <TbCheck size={12} aria-hidden /> : <TbX size={12} aria-hidden />}
              >
                {partName(name)}: {t(status)}
              </Badge>
            ))}
          </Group>
        </li>,
        ...(processes ?? []).map(({ id, roles, host, version, isAlive, heardAt, startedAt }) => (
          <li key={id} className={classes.line}>
            <div>
              <Text size="sm">{roles.join(', ')}</Text>
              <Text size="xs" c="dimmed">
                {host ?? id} {version && `· ${version}`}
              </Text>
            </div>
            <Text size="sm" c={isAlive ? undefined : 'var(--mantine-color-error)'}>
              {isAlive ? (
                startedAt && t('processSince', { since: format.relative(startedAt) })
              ) : (
                <>
                  {t('silentProcess')} <RelativeTime at={heardAt} />
                </>
              )}
            </Text>
          </li>
        )),
      ]}
    </Panel>
  );
}

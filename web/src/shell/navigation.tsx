import { NavLink, Stack, Text } from '@mantine/core';
import {
  TbActivity,
  TbAlertTriangle,
  TbAntennaBars5,
  TbBell,
  TbBroadcast,
  TbHash,
  TbHistory,
  TbKey,
  TbListSearch,
  TbMailOff,
  TbPlug,
  TbRefresh,
  TbSettings,
} from 'react-icons/tb';
import { Link, useRouterState } from '@tanstack/react-router';
import { useShellTexts } from './texts.ts';

/** By what somebody wants to do, in the order in which they usually do it. */
const groups = [
  {
    title: 'see',
    pages: [
      ['overview', TbActivity],
      ['notifications', TbListSearch],
      ['tail', TbAntennaBars5],
    ],
  },
  {
    title: 'mend',
    pages: [
      ['dead-letters', TbMailOff],
      ['replays', TbRefresh],
      ['endpoints', TbPlug],
      ['alerts', TbAlertTriangle],
    ],
  },
  {
    title: 'arrange',
    pages: [
      ['subscriptions', TbBell],
      ['channels', TbHash],
      ['applications', TbKey],
      ['publish', TbBroadcast],
    ],
  },
  {
    title: 'watch',
    pages: [
      ['audit', TbHistory],
      ['settings', TbSettings],
    ],
  },
] as const;

export function Navigation({ onLeave }: { onLeave: () => void }) {
  const t = useShellTexts();
  const here = useRouterState({ select: ({ location }) => location.pathname.split('/')[1] });
  return (
    <Stack component="nav" aria-label={t('navigation')} gap="md">
      {groups.map(({ title, pages }) => (
        <div key={title}>
          <Text size="xs" c="dimmed" px="sm" pb={2}>
            {t(title)}
          </Text>
          {pages.map(([page, Icon]) => (
            <NavLink
              key={page}
              label={t(page)}
              active={here === page}
              aria-current={here === page ? 'page' : undefined}
              leftSection={<Icon size={18} aria-hidden />}
              renderRoot={(props) => <Link to={`/${page}`} {...props} />}
              onClick={onLeave}
              py={6}
              style={{ borderRadius: 'var(--mantine-radius-md)' }}
            />
          ))}
        </div>
      ))}
    </Stack>
  );
}

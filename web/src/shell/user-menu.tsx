import {
  ActionIcon,
  Menu,
  SegmentedControl,
  Text,
  useMantineColorScheme,
  type MantineColorScheme,
} from '@mantine/core';
import { IconLanguage, IconLogout, IconUserCircle } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import { callConsole } from '../api/client.ts';
import { changeLanguage, currentLanguage } from '../i18n/i18n.ts';
import { useForgetSession, useSession } from './session.tsx';
import { useShellTexts } from './texts.ts';

export function UserMenu() {
  const t = useShellTexts();
  const { data: session } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const navigate = useNavigate();
  const forget = useForgetSession();
  const end = async (request: () => Promise<unknown>) => {
    await request();
    forget();
    void navigate({ to: '/sign-in' });
  };
  const name = session ? t('user', { name: session.user.name, role: t(session.user.role) }) : '';
  return (
    <Menu position="bottom-end" width={260}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={name || t('appearance')}>
          <IconUserCircle size={22} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {session && <Menu.Label>{name}</Menu.Label>}
        <Menu.Item
          lang={currentLanguage() === 'en' ? 'nl' : 'en'}
          leftSection={<IconLanguage size={16} aria-hidden />}
          onClick={() => void changeLanguage(currentLanguage() === 'en' ? 'nl' : 'en')}
        >
          {t('language')}
        </Menu.Item>
        <Menu.Divider />
        <Text size="xs" c="dimmed" px="sm" pb={4}>
          {t('appearance')}
        </Text>
        <SegmentedControl
          fullWidth
          size="xs"
          aria-label={t('appearance')}
          value={colorScheme}
          onChange={(value) => setColorScheme(value as MantineColorScheme)}
          data={(['light', 'dark', 'auto'] as const).map((value) => ({ value, label: t(value) }))}
        />
        {session && (
          <>
            <Menu.Divider mt="xs" />
            <Menu.Item
              leftSection={<IconLogout size={16} aria-hidden />}
              onClick={() => void end(() => callConsole('DELETE', 'session'))}
            >
              {t('signOut')}
            </Menu.Item>
            <Menu.Item onClick={() => void end(() => callConsole('POST', 'session/end-all'))}>
              {t('signOutEverywhere')}
            </Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}

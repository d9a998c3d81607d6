import {
  ActionIcon,
  Menu,
  SegmentedControl,
  Text,
  useMantineColorScheme,
  type MantineColorScheme,
} from '@mantine/core';
import { TbLanguage, TbLogout, TbUserCircle } from 'react-icons/tb';
import { lazy, Suspense, useState } from 'react';
import { flushSync } from 'react-dom';
import { loadPart } from '../api/load-part.ts';
import { callConsole, consoleRoot } from '../api/client.ts';
import { ApiProblem, isProblem } from '../api/problem.ts';
import { keepDraftFor } from '../api/session.ts';
import { changeLanguage, currentLanguage } from '../i18n/i18n.ts';
import { Contained } from '../parts/contained.tsx';
import { InEnglish } from '../parts/in-english.tsx';
import { toldFailure } from '../parts/told.ts';
import { useSession } from './session.tsx';
import { useSignInTexts } from './sign-in-texts.ts';
import { useShellTexts } from './texts.ts';

// Dialogs are not in the first load.
const EndAllSessions = lazy(() =>
  loadPart(() => import('./end-all-sessions.tsx')).then((part) => ({ default: part.EndAllSessions })),
);

export function UserMenu() {
  const t = useShellTexts();
  const { data: session } = useSession();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const signIn = useSignInTexts();
  const [asks, setAsks] = useState(false);
  const end = async (path: string, method: 'POST' | 'DELETE', body?: object) => {
    try {
      await callConsole(method, path, body);
    } catch (error) {
      // Signed out already, which is what was asked for.
      if (!isProblem(error) || error.status !== 401) throw error;
    }
    // The dialog would ask before it lets this page go.
    flushSync(() => setAsks(false));
    keepDraftFor(null);
    // A new page: nothing that one user has seen is left for the next. The provider is to ask for the password.
    location.assign(new URL('sign-in?again=1', consoleRoot));
  };
  const tryToEnd = (...request: Parameters<typeof end>) =>
    void end(...request).catch((error: unknown) => {
      toldFailure(error instanceof ApiProblem ? <InEnglish>{error.problem.detail}</InEnglish> : t('unreachableNow'), {
        title: signIn('notSignedOut'),
      });
    });
  const name = session ? t('user', { name: session.user.name, role: t(session.user.role) }) : '';
  return (
    <>
      <Menu position="bottom-end" width={260}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label={name || t('appearance')}>
            <TbUserCircle size={22} aria-hidden />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {session && <Menu.Label>{name}</Menu.Label>}
          <Menu.Item
            lang={currentLanguage() === 'en' ? 'nl' : 'en'}
            leftSection={<TbLanguage size={16} aria-hidden />}
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
              <Menu.Item leftSection={<TbLogout size={16} aria-hidden />} onClick={() => tryToEnd('session', 'DELETE')}>
                {t('signOut')}
              </Menu.Item>
              <Menu.Item onClick={() => tryToEnd('session/end-all', 'POST')}>{t('signOutEverywhere')}</Menu.Item>
              {session.user.role === 'administrator' && (
                <Menu.Item color="red" onClick={() => setAsks(true)}>
                  {signIn('everybody')}
                </Menu.Item>
              )}
            </>
          )}
        </Menu.Dropdown>
      </Menu>
      {asks && (
        <Contained>
          <Suspense>
            <EndAllSessions
              opened
              onClose={() => setAsks(false)}
              onConfirm={() => end('session/end-all', 'POST', { of: 'everybody' })}
            />
          </Suspense>
        </Contained>
      )}
    </>
  );
}

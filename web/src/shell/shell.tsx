import { AppShell, Burger, Group, Text, UnstyledButton } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useRef } from 'react';
import { flushSync } from 'react-dom';
import { loadPart } from '../api/load-part.ts';
import { consoleRoot } from '../api/client.ts';
import { Keyboard } from '../keyboard/keyboard.tsx';
import { Contained } from '../parts/contained.tsx';
import { ProblemAlert } from '../parts/problem-alert.tsx';
import { ConnectionNotice } from './connection-notice.tsx';
import { Navigation } from './navigation.tsx';
import { useIsOver, useSession } from './session.tsx';
import { useShellTexts } from './texts.ts';
import { UserMenu } from './user-menu.tsx';
import classes from './shell.module.css';

const SignInAgain = lazy(() =>
  loadPart(() => import('./sign-in-again.tsx')).then((part) => ({ default: part.SignInAgain })),
);

/** The frame around every page of somebody who is signed in. */
export function Shell() {
  const t = useShellTexts();
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const { data: session, error, refetch } = useSession();
  const isOver = useIsOver();
  const navigate = useNavigate();
  const location = useRouterState({ select: ({ location: { pathname, href } }) => ({ pathname, href }) });
  const main = useRef<HTMLElement>(null);
  const shown = useRef(location.pathname);

  useEffect(() => {
    // The address changes before this page is gone.
    if (session !== null || pathIn(location.pathname).startsWith('sign-in')) return;
    void navigate({ to: '/sign-in', search: { to: pathIn(location.href) }, replace: true });
  }, [session, navigate, location.href, location.pathname]);

  useEffect(() => {
    if (shown.current === location.pathname) return;
    shown.current = location.pathname;
    // As a page load would do it: a screen reader begins with the new page, not where the link was.
    main.current?.focus({ preventScroll: true });
  }, [location.pathname]);

  const leaveMenu = () => {
    if (!isOpen) return;
    flushSync(close);
    // The link is hidden now. The address may be the same, which the effect above leaves alone.
    main.current?.focus({ preventScroll: true });
  };

  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 220, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding="md"
      transitionDuration={0}
    >
      <a
        href={`${location.href.slice(1)}#main`}
        className={classes.skip}
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        {t('skip')}
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="xs" wrap="nowrap">
            <Burger
              opened={isOpen}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={t('menu')}
              aria-expanded={isOpen}
              aria-controls="pages"
            />
            <UnstyledButton renderRoot={(props) => <Link to="/overview" {...props} />}>
              <Group gap={8} wrap="nowrap">
                <img src={new URL('assets/heraut.svg?2', consoleRoot).href} alt="" width={26} height={26} />
                <Text fw={600}>Heraut</Text>
              </Group>
            </UnstyledButton>
          </Group>
          <Group gap="xs" wrap="nowrap">
            {session && <Keyboard />}
            <UserMenu />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar id="pages" p="xs" className={isOpen ? undefined : classes.closed} style={{ overflowY: 'auto' }}>
        <Navigation onLeave={leaveMenu} />
      </AppShell.Navbar>
      <AppShell.Main id="main" ref={main} tabIndex={-1} className={isOpen ? classes.beneath : classes.main}>
        <ConnectionNotice />
        {error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
        {session && (
          <Suspense>
            <Outlet />
          </Suspense>
        )}
        {session && isOver && (
          <Contained>
            <Suspense>
              <SignInAgain />
            </Suspense>
          </Contained>
        )}
      </AppShell.Main>
    </AppShell>
  );
}

/** Relative to the console. */
const pathIn = (href: string): string => href.replace(consoleRoot.pathname, '').replace(/^\/+/, '');

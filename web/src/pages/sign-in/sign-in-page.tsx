import { Alert, Anchor, Center, Group, Paper, Stack, Text, Title } from '@mantine/core';
import { TbAlertTriangle, TbCircleCheck } from 'react-icons/tb';
import { useEffect } from 'react';
import { useNavigate } from '@tanstack/react-router';
import { AnchorLink } from '../../parts/links.tsx';
import { consoleRoot } from '../../api/client.ts';
import { changeLanguage, currentLanguage } from '../../i18n/i18n.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { oneOf, useUrlState } from '../../parts/url-state.ts';
import { useSession, useWaysIn } from '../../shell/session.tsx';
import { SignInForm } from '../../shell/sign-in-form.tsx';
import { useSignInTexts } from '../../shell/sign-in-texts.ts';
import { useShellTexts } from '../../shell/texts.ts';

/** As the server names them (src/sessions/sign-in-failed.ts). */
const failures = [
  'provider-unavailable',
  'denied',
  'begin-again',
  'no-role',
  'ticket-refused',
  'throttled',
  'unavailable',
] as const;

/** For whoever is not signed in, and for whoever has just come back from the provider. */
export function SignInPage() {
  const t = useSignInTexts();
  const shell = useShellTexts();
  const [{ to, error: reason, done, again }] = useUrlState();
  const { data: session, error, refetch } = useSession();
  const waysIn = useWaysIn();
  const navigate = useNavigate();
  const isDone = done !== undefined;
  const target = pageOf(oneOf(to));

  useEffect(() => {
    document.title = `${t('title')} · Heraut`;
  });
  useEffect(() => {
    if (session && !isDone) void navigate({ href: `/${target}`, replace: true });
  }, [session, isDone, target, navigate]);

  const other = currentLanguage() === 'en' ? 'nl' : 'en';
  return (
    <Center mih="100vh" p="md" component="main">
      <Paper withBorder shadow="sm" p="xl" w="100%" maw={400}>
        <Stack gap="md">
          <Group gap="xs" wrap="nowrap">
            <img src={new URL('assets/heraut.svg?2', consoleRoot).href} alt="" width={30} height={30} />
            <Title order={1}>{session && isDone ? t('done') : `Heraut`}</Title>
          </Group>
          {reason !== undefined && !session && (
            <Alert color="red" variant="light" icon={<TbAlertTriangle aria-hidden />} title={t('failed')} role="alert">
              {t(failures.find((each) => each === oneOf(reason)) ?? 'other')}
            </Alert>
          )}
          {error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
          {session && isDone && (
            <>
              <Group gap="xs" wrap="nowrap">
                <TbCircleCheck aria-hidden />
                <Text size="sm">{t('doneDetail')}</Text>
              </Group>
              <AnchorLink size="sm" to="/">
                {t('toConsole')}
              </AnchorLink>
            </>
          )}
          {session === null && waysIn && <SignInForm waysIn={waysIn} to={target} asksAgain={again !== undefined} />}
          <Anchor component="button" type="button" size="xs" lang={other} onClick={() => void changeLanguage(other)}>
            {shell('language')}
          </Anchor>
        </Stack>
      </Paper>
    </Center>
  );
}

/** Relative to the console, without a slash in front; any other address: its first page. */
function pageOf(to = ''): string {
  const url = URL.canParse(`./${to.replace(/^\/+/, '')}`, consoleRoot)
    ? new URL(`./${to.replace(/^\/+/, '')}`, consoleRoot)
    : consoleRoot;
  if (!url.href.startsWith(consoleRoot.href)) return '';
  const path = url.href.slice(consoleRoot.href.length);
  return path.startsWith('sign-in') ? '' : path;
}

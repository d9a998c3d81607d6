import { Alert, Button, PasswordInput, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { consoleRoot } from '../api/client.ts';
import { isProblem } from '../api/problem.ts';
import { signInWithSecret, type WaysIn } from '../api/session.ts';
import { BusyButton } from '../parts/busy-button.tsx';
import { ProblemAlert } from '../parts/problem-alert.tsx';
import { useSignInTexts } from './sign-in-texts.ts';

interface Props {
  waysIn: WaysIn;
  /** The page of the console to come back to from the provider. */
  to: string;
  /** The provider is to ask for the password again. */
  asksAgain?: boolean;
  /** The provider is opened beside this page, which stays as it is. */
  inNewTab?: boolean;
}

/** The way in that there is. Its user sees by the session that it worked. */
export function SignInForm({ waysIn, to, asksAgain = false, inNewTab = false }: Props) {
  const t = useSignInTexts();
  if (!waysIn.oidc) return <SecretForm />;
  const address = new URL('begin', consoleRoot);
  address.searchParams.set('to', to);
  if (asksAgain) address.searchParams.set('again', '1');
  return (
    <Stack gap="xs">
      <Button component="a" href={address.href} fullWidth data-autofocus {...(inNewTab && { target: '_blank' })}>
        {t('at', { label: waysIn.label })}
      </Button>
      {inNewTab && (
        <Text size="xs" c="dimmed">
          {t('newTab')}
        </Text>
      )}
    </Stack>
  );
}

function SecretForm() {
  const t = useSignInTexts();
  const client = useQueryClient();
  const [clientId, setClientId] = useState('');
  const [secret, setSecret] = useState('');
  const { mutate, isPending, error } = useMutation({ mutationFn: () => signInWithSecret(client, clientId, secret) });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        mutate();
      }}
    >
      <Stack gap="sm">
        <TextInput
          label={t('clientId')}
          value={clientId}
          onChange={(event) => setClientId(event.currentTarget.value)}
          autoComplete="username"
          autoCapitalize="none"
          spellCheck={false}
          maxLength={255}
          required
          withAsterisk={false}
          data-autofocus
        />
        <PasswordInput
          label={t('secret')}
          description={t('secretHint')}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          value={secret}
          onChange={(event) => setSecret(event.currentTarget.value)}
          autoComplete="current-password"
          maxLength={255}
          required
          withAsterisk={false}
        />
        {isProblem(error, 'sign-in-refused') || isProblem(error, 'throttled') ? (
          <Alert color="red" variant="light" role="alert">
            {t(error.code === 'throttled' ? 'throttled' : 'wrong')}
          </Alert>
        ) : (
          error && <ProblemAlert error={error} />
        )}
        <BusyButton type="submit" isBusy={isPending} fullWidth>
          {t('submit')}
        </BusyButton>
      </Stack>
    </form>
  );
}

import { Alert, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { BusyButton } from '../../parts/busy-button.tsx';
import { InEnglish } from '../../parts/in-english.tsx';
import { AskUnderWay } from '../../parts/leaving.tsx';
import { ButtonLink } from '../../parts/links.tsx';
import { answerOf, api, reachReceiver } from '../../api/client.ts';
import { isProblem } from '../../api/problem.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { randomKey } from '../../parts/random-key.ts';
import { useOnce } from '../../parts/use-once.ts';
import { useMay, useSession } from '../../shell/session.tsx';
import { Why } from './step.tsx';
import { useWelcomeTexts } from './texts.ts';
import { useLookAgain } from './use-progress.ts';

/** Where `npm start` lets its receiver listen. */
const demoReceiver = 'http://127.0.0.1:8001/webhook';
const isOwnMachine = (): boolean => ['127.0.0.1', 'localhost', '[::1]'].includes(window.location.hostname);

interface Props {
  channels: readonly { name: string }[];
  /** Its deliveries are signed. This step goes as soon as there is a subscription: the page shows the secret. */
  onSecret: (signingSecret: string) => void;
}

export function SubscriptionStep({ channels, onSecret }: Props) {
  const t = useWelcomeTexts();
  const may = useMay('administrator');
  const owner = useOwner();
  const lookAgain = useLookAgain();
  const [channel, setChannel] = useState(channels[0]!.name);
  const [callbackUrl, setCallbackUrl] = useState(isOwnMachine() ? demoReceiver : '');
  const [auth, setAuth] = useState(() => `Bearer ${randomKey()}`);
  const once = useOnce();
  const subscribe = useMutation({
    mutationFn: () => {
      const credentials = { authorization: { kind: 'verbatim' as const, auth } };
      const body = { ownerClientId: owner!, callbackUrl, channels: [{ channel, filters: {} }], credentials };
      return once(body, (sent, header) =>
        answerOf(api.POST('/admin/v1/subscriptions', { params: { header }, body: sent, fetch: reachReceiver })),
      );
    },
    onSuccess: ({ signingSecret = null }) => {
      if (signingSecret !== null) onSecret(signingSecret);
      return lookAgain();
    },
  });
  const { error } = subscribe;
  const wrong = isProblem(error) ? error.problem.invalidParams : [];
  const errorOf = (field: RegExp) => {
    const found = wrong.find(({ name }) => field.test(name));
    return found && <InEnglish>{found.reason}</InEnglish>;
  };
  const isDemo = callbackUrl === demoReceiver;
  const isUnanswered = wrong.some(({ code }) => code.endsWith('callback-url'));
  if (owner === null)
    return (
      <Stack gap="sm" align="flex-start">
        <Why>{t('subscriptionWhy')}</Why>
        <Text size="sm">{t('noOwner')}</Text>
        <ButtonLink to="/applications">{t('makeApplication')}</ButtonLink>
      </Stack>
    );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        subscribe.mutate();
      }}
    >
      <AskUnderWay isBusy={subscribe.isPending} />
      <Why>{t('subscriptionWhy')}</Why>
      {!may && <Alert color="gray">{t('needsAdministrator')}</Alert>}
      <Group align="flex-start" mt="sm" gap="sm">
        {channels.length > 1 && (
          <Select
            label={t('onChannel')}
            data={channels.map(({ name }) => name)}
            value={channel}
            onChange={(chosen) => setChannel(chosen ?? channel)}
            limit={100}
            searchable
            style={{ flex: '1 1 160px' }}
          />
        )}
        <TextInput
          label={t('callbackUrl')}
          description={isDemo ? t('demo') : undefined}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          value={callbackUrl}
          onChange={(event) => setCallbackUrl(event.currentTarget.value)}
          error={errorOf(/^callbackUrl/)}
          placeholder="https://"
          inputMode="url"
          autoComplete="off"
          withAsterisk
          style={{ flex: '2 1 260px' }}
        />
        <TextInput
          label={t('auth')}
          description={t('authDetail')}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          value={auth}
          onChange={(event) => setAuth(event.currentTarget.value)}
          error={errorOf(/^credentials/)}
          autoComplete="off"
          spellCheck={false}
          withAsterisk
          style={{ flex: '2 1 260px' }}
        />
      </Group>
      {error !== null && errorOf(/^(callbackUrl|credentials)/) === undefined && <ProblemAlert error={error} isOnce />}
      {isUnanswered && (
        <Text size="sm" mt="sm">
          {t('demoAbsent')}
        </Text>
      )}
      <Group mt="sm">
        <BusyButton type="submit" isBusy={subscribe.isPending || owner === undefined} disabled={!may}>
          {t('subscribe')}
        </BusyButton>
        {owner !== undefined && (
          <Text size="xs" c="dimmed">
            {t('owner', { owner })}
          </Text>
        )}
      </Group>
    </form>
  );
}

/**
 * The application that a first subscription belongs to: that of the viewer, or else the first there is. undefined: not
 * known yet.
 */
function useOwner(): string | null | undefined {
  const { data: session } = useSession();
  const via = session?.user.via;
  const isApplication = via !== undefined && via !== 'oidc';
  const { data } = useQuery({
    queryKey: ['welcome', 'applications'],
    enabled: via === 'oidc',
    queryFn: async () => (await answerOf(api.GET('/admin/v1/applications'))).applications,
  });
  if (isApplication) return session!.user.name;
  return data && (data[0]?.clientId ?? null);
}

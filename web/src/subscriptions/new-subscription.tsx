import {
  Autocomplete,
  Button,
  Collapse,
  Divider,
  Drawer,
  Fieldset,
  Group,
  Stack,
  Text,
  TextInput,
  Title,
} from '@mantine/core';
import { TbChevronDown, TbChevronRight } from 'react-icons/tb';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState, type FormEvent } from 'react';
import { BusyButton } from '../parts/busy-button.tsx';
import { applicationsQuery } from '../parts/catalogue.ts';
import { answerOf, api, reachReceiver } from '../api/client.ts';
import { isSame } from '../drafts/draft.ts';
import { defineTexts } from '../i18n/i18n.ts';
import { errorOf } from '../parts/field-errors.tsx';
import { AskTyped, AskUnderWay, unlessBusy } from '../parts/leaving.tsx';
import { ProblemAlert } from '../parts/problem-alert.tsx';
import { useOnce } from '../parts/use-once.ts';
import {
  areNamed,
  emptyAuthorization,
  emptyIdentity,
  isAuthorizationComplete,
  toAuthorization,
  toOwn,
  type HeaderDraft,
} from './credential-drafts.ts';
import { AuthorizationFields, HeaderFields, IdentityFields } from './credentials-fields.tsx';
import { isComplete, nextKey, toChannels, type EntryDraft } from './filter-drafts.ts';
import { FiltersEditor } from './filters-editor.tsx';
import { FiltersPreview } from './filters-preview.tsx';

const useTexts = defineTexts(
  'new-subscription',
  {
    title: 'New subscription',
    intro:
      'The callback is called twice right away, with a test: without authorization, which it must refuse, and with it, which it must accept.',
    owner: 'Application',
    ownerHelp: 'Client id of the application that it belongs to.',
    callbackUrl: 'Callback URL',
    what: 'Notifications that it gets',
    how: 'How the receiver knows that a call is ours',
    more: 'Client certificate, authority and headers',
    moreHelp: 'Where the receiver needs them. The call that it must accept is made with them.',
    tls: 'Client certificate and authority',
    headers: 'Headers of its own',
    create: 'Create',
    cancel: 'Cancel',
    later: 'Pace, retries and signing keys are set on its page.',
  },
  {
    title: 'Nieuw abonnement',
    intro:
      'De callback wordt meteen twee keer aangeroepen met een test: zonder autorisatie, wat hij moet weigeren, en ermee, wat hij moet aannemen.',
    owner: 'Applicatie',
    ownerHelp: 'Client-id van de applicatie waar het van is.',
    callbackUrl: 'Callback-URL',
    what: 'Notificaties die het krijgt',
    how: 'Waaraan de ontvanger herkent dat een aanroep van ons is',
    more: 'Clientcertificaat, CA en headers',
    moreHelp: 'Als de ontvanger ze nodig heeft. De aanroep die hij moet aannemen, wordt ermee gedaan.',
    tls: 'Clientcertificaat en CA',
    headers: 'Eigen headers',
    create: 'Aanmaken',
    cancel: 'Annuleren',
    later: 'Tempo, nieuwe pogingen en sleutels stelt u in op de pagina van het abonnement.',
  },
);

export interface Created {
  id: string;
  /** Where its deliveries are signed: shown this once. */
  signingSecret: string | null;
}

interface Props {
  opened: boolean;
  /** That its first entry is about. */
  channel?: string | undefined;
  onClose: () => void;
  onCreated: (created: Created) => void;
}

/** The input stays when it is closed and opened again, and through every error. */
export function NewSubscription({ opened, channel = '', onClose, onCreated }: Props) {
  const t = useTexts();
  const queries = useQueryClient();
  const { data: applications = [] } = useQuery({ ...applicationsQuery, enabled: opened });
  const [owner, setOwner] = useState('');
  const [callbackUrl, setCallbackUrl] = useState('');
  const [entries, setEntries] = useState<EntryDraft[]>(() => [{ key: nextKey(), channel, filters: [] }]);
  const [authorization, setAuthorization] = useState(emptyAuthorization);
  const [isMoreShown, setMoreShown] = useState(false);
  const [identity, setIdentity] = useState(emptyIdentity);
  const [headers, setHeaders] = useState<HeaderDraft[]>([]);
  const input = { owner, callbackUrl, channels: toChannels(entries), authorization, identity, headers };
  const [untouched] = useState(input);
  const form = useRef<HTMLFormElement>(null);
  const once = useOnce();
  const create = useMutation({
    mutationFn: () => {
      const body = {
        ownerClientId: owner,
        callbackUrl,
        channels: toChannels(entries),
        credentials: { authorization: toAuthorization(authorization), ...toOwn(identity, headers) },
      };
      return once(body, (sent, header) =>
        answerOf(api.POST('/admin/v1/subscriptions', { params: { header }, body: sent, fetch: reachReceiver })),
      );
    },
    // A secret whose first answer was lost is not shown again: another key can be made on its page.
    onSuccess: ({ id, signingSecret = null }) => onCreated({ id, signingSecret }),
    // Also where no answer came: it may have been made.
    onSettled: () => void queries.invalidateQueries({ queryKey: ['subscriptions'] }),
  });
  // The form is longer than its window: what is wrong would be out of sight.
  useEffect(() => {
    if (create.error) showWhatIsWrong(form.current);
  }, [create.error]);
  const refused = (name: string) => errorOf(create.error, name);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  const leave = unlessBusy(create.isPending, onClose);
  // A name that is missing keeps it from being made, and has to be in sight.
  const isNameMissing = !areNamed(headers);
  const isMoreOpen = isMoreShown || isNameMissing;
  const isReady =
    owner !== '' &&
    callbackUrl !== '' &&
    isComplete(entries) &&
    isAuthorizationComplete(authorization) &&
    !isNameMissing;
  return (
    <>
      <Drawer opened={opened} onClose={leave} position="right" size="xl" title={t('title')}>
        <form ref={form} onSubmit={submit}>
          <Stack gap="md">
            <Text size="sm" c="dimmed">
              {t('intro')}
            </Text>
            <Autocomplete
              label={t('owner')}
              description={t('ownerHelp')}
              data={applications.map(({ clientId }) => clientId)}
              limit={50}
              value={owner}
              onChange={setOwner}
              error={refused('ownerClientId')}
              openOnFocus={false}
              required
              data-autofocus
            />
            <TextInput
              label={t('callbackUrl')}
              type="url"
              placeholder="https://receiver.example/webhook"
              value={callbackUrl}
              onChange={(event) => setCallbackUrl(event.currentTarget.value)}
              error={refused('callbackUrl')}
              required
            />
            <Divider />
            <Title order={3}>{t('what')}</Title>
            <FiltersEditor value={entries} onChange={setEntries} />
            {opened && <FiltersPreview drafts={entries} />}
            <Divider />
            <Title order={3}>{t('how')}</Title>
            <AuthorizationFields value={authorization} onChange={setAuthorization} />
            <Button
              variant="subtle"
              size="compact-sm"
              w="fit-content"
              aria-expanded={isMoreOpen}
              leftSection={
                isMoreOpen ? <TbChevronDown size={16} aria-hidden /> : <TbChevronRight size={16} aria-hidden />
              }
              onClick={() => setMoreShown(!isMoreOpen || isNameMissing)}
            >
              {t('more')}
            </Button>
            <Collapse expanded={isMoreOpen}>
              <Stack gap="md">
                <Text size="sm" c="dimmed">
                  {t('moreHelp')}
                </Text>
                <Fieldset legend={t('tls')}>
                  <IdentityFields value={identity} onChange={setIdentity} />
                </Fieldset>
                <Fieldset legend={t('headers')}>
                  <HeaderFields value={headers} onChange={setHeaders} />
                </Fieldset>
              </Stack>
            </Collapse>
            <Text size="sm" c="dimmed">
              {t('later')}
            </Text>
            {create.error && <ProblemAlert error={create.error} isOnce />}
            <Group justify="flex-end">
              <Button variant="default" onClick={leave} disabled={create.isPending}>
                {t('cancel')}
              </Button>
              <BusyButton type="submit" isBusy={create.isPending} disabled={!isReady}>
                {t('create')}
              </BusyButton>
            </Group>
          </Stack>
        </form>
        <AskUnderWay isBusy={create.isPending} />
      </Drawer>
      <AskTyped isTyped={(create.isIdle || create.isError) && !isSame(input, untouched)} form={t('title')} />
    </>
  );
}

function showWhatIsWrong(form: HTMLFormElement | null) {
  const field = form?.querySelector<HTMLElement>('[aria-invalid="true"]');
  if (field) field.focus();
  else form?.querySelector('[role="alert"]')?.scrollIntoView({ block: 'nearest' });
}

import {
  ActionIcon,
  Button,
  Checkbox,
  Fieldset,
  Group,
  PasswordInput,
  Select,
  Stack,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core';
import { TbPlus, TbTrash } from 'react-icons/tb';
import { useRef } from 'react';
import { defineTexts } from '../i18n/i18n.ts';
import { useFocusAfterRemoval } from '../parts/focus-after-removal.ts';
import {
  areNamed,
  goingWith,
  type AuthorizationDraft,
  type Credentials,
  type HeaderDraft,
  type IdentityDraft,
} from './credential-drafts.ts';
import { nextKey } from './filter-drafts.ts';

const useCredentialTexts = defineTexts(
  'credentials-fields',
  {
    kind: 'Source of the Authorization header',
    verbatim: 'A fixed value',
    zgw: 'A JWT, made for each delivery (ZGW)',
    oauth2: 'A token by OAuth 2.0 client credentials',
    auth: 'Authorization header',
    authHelp: 'For example: Bearer abc. Never shown again.',
    clientId: 'Client id',
    secret: 'Secret',
    secretHelp: 'Never shown again.',
    userId: 'User id',
    userRepresentation: 'User representation',
    tokenUrl: 'Token endpoint',
    clientSecret: 'Client secret',
    scope: 'Scope',
    clientAuthentication: 'Client id and secret go',
    basic: 'into the Authorization header',
    body: 'into the body',
    tokenTls: 'Client certificate and authority for the token endpoint',
    tokenTlsHelp: 'Those there are can never be shown. They stay where they are given again.',
    mayGo: 'Remove those not given again: {{names}}',
    certificate: 'Certificate (PEM)',
    key: 'Private key (PEM)',
    keyHelp: 'Without a passphrase. Never shown again.',
    authority: 'Certificates of its authority (PEM)',
    authorityHelp: 'Where the certificate of the other side does not come from an authority of the web.',
    header: 'Name of header {{number}}',
    value: 'Value of header {{number}}',
    headerNeeded: 'Give it a name, or remove it.',
    addHeader: 'Add a header',
    removeHeader: 'Remove header {{number}}',
    show: 'Show',
  },
  {
    kind: 'Waar de Authorization-header vandaan komt',
    verbatim: 'Een vaste waarde',
    zgw: 'Een JWT, voor elke aflevering gemaakt (ZGW)',
    oauth2: 'Een token via OAuth 2.0 client credentials',
    auth: 'Authorization-header',
    authHelp: 'Bijvoorbeeld: Bearer abc. Wordt nooit meer getoond.',
    clientId: 'Client-id',
    secret: 'Geheim',
    secretHelp: 'Wordt nooit meer getoond.',
    userId: 'Gebruikers-id',
    userRepresentation: 'Weergave van de gebruiker',
    tokenUrl: 'Token-endpoint',
    clientSecret: 'Clientgeheim',
    scope: 'Scope',
    clientAuthentication: 'Client-id en geheim gaan',
    basic: 'in de Authorization-header',
    body: 'in het bericht',
    tokenTls: 'Clientcertificaat en CA voor het token-endpoint',
    tokenTlsHelp: 'Die er zijn, kunnen nooit getoond worden. Ze blijven als u ze opnieuw opgeeft.',
    mayGo: 'Weghalen die niet opnieuw zijn opgegeven: {{names}}',
    certificate: 'Certificaat (PEM)',
    key: 'Privésleutel (PEM)',
    keyHelp: 'Zonder wachtwoord. Wordt nooit meer getoond.',
    authority: 'Certificaten van de CA (PEM)',
    authorityHelp: 'Als het certificaat van de andere kant niet van een algemeen bekende CA komt.',
    header: 'Naam van header {{number}}',
    value: 'Waarde van header {{number}}',
    headerNeeded: 'Geef hem een naam, of verwijder hem.',
    addHeader: 'Header toevoegen',
    removeHeader: 'Verwijder header {{number}}',
    show: 'Toon',
  },
);

interface Part<T> {
  value: T;
  onChange: (value: T) => void;
}

interface Authorization extends Part<AuthorizationDraft> {
  /** Those that are replaced. */
  now?: Credentials;
}

export function AuthorizationFields({ value, onChange, now }: Authorization) {
  const t = useCredentialTexts();
  const going = goingWith(value, now);
  const text = (name: 'clientId' | 'userId' | 'userRepresentation' | 'tokenUrl' | 'scope', isRequired = true) => (
    <TextInput
      label={t(name)}
      value={value[name]}
      required={isRequired}
      autoComplete="off"
      onChange={(event) => onChange({ ...value, [name]: event.currentTarget.value })}
    />
  );
  const secret = (name: 'auth' | 'secret' | 'clientSecret') => (
    <PasswordInput
      label={t(name)}
      description={t(name === 'auth' ? 'authHelp' : 'secretHelp')}
      value={value[name]}
      required
      autoComplete="new-password"
      visibilityToggleButtonProps={{ 'aria-label': t('show') }}
      onChange={(event) => onChange({ ...value, [name]: event.currentTarget.value })}
    />
  );
  return (
    <Stack gap="sm">
      <Select
        label={t('kind')}
        data={(['verbatim', 'zgw', 'oauth2'] as const).map((kind) => ({ value: kind, label: t(kind) }))}
        value={value.kind}
        allowDeselect={false}
        onChange={(kind) => onChange({ ...value, kind: (kind ?? 'verbatim') as AuthorizationDraft['kind'] })}
      />
      {value.kind === 'verbatim' && secret('auth')}
      {value.kind === 'zgw' && (
        <>
          {text('clientId')}
          {secret('secret')}
          {text('userId', false)}
          {text('userRepresentation', false)}
        </>
      )}
      {value.kind === 'oauth2' && (
        <>
          {text('tokenUrl')}
          {text('clientId')}
          {secret('clientSecret')}
          {text('scope', false)}
          <Select
            label={t('clientAuthentication')}
            data={(['basic', 'body'] as const).map((way) => ({ value: way, label: t(way) }))}
            value={value.clientAuthentication}
            allowDeselect={false}
            onChange={(way) => onChange({ ...value, clientAuthentication: way === 'body' ? 'body' : 'basic' })}
          />
          <Fieldset legend={t('tokenTls')}>
            <Stack gap="sm">
              {now?.tokenTls && <Text size="sm">{t('tokenTlsHelp')}</Text>}
              <IdentityFields value={value.tokenTls} onChange={(tokenTls) => onChange({ ...value, tokenTls })} />
              {going !== '' && (
                <Checkbox
                  label={t('mayGo', { names: going })}
                  checked={value.mayGo === going}
                  onChange={(event) => onChange({ ...value, mayGo: event.currentTarget.checked ? going : '' })}
                />
              )}
            </Stack>
          </Fieldset>
        </>
      )}
    </Stack>
  );
}

export function IdentityFields({ value, onChange }: Part<IdentityDraft>) {
  const t = useCredentialTexts();
  const area = (name: keyof IdentityDraft, help?: string) => (
    <Textarea
      label={t(name)}
      description={help}
      value={value[name]}
      autosize
      minRows={3}
      maxRows={8}
      ff="monospace"
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => onChange({ ...value, [name]: event.currentTarget.value })}
    />
  );
  return (
    <Stack gap="sm">
      {area('certificate')}
      {area('key', t('keyHelp'))}
      {area('authority', t('authorityHelp'))}
    </Stack>
  );
}

export function HeaderFields({ value, onChange }: Part<HeaderDraft[]>) {
  const t = useCredentialTexts();
  const put = (index: number, changed: Partial<HeaderDraft>) =>
    onChange(value.map((each, at) => (at === index ? { ...each, ...changed } : each)));
  const adds = useRef<HTMLButtonElement>(null);
  const { list, removing } = useFocusAfterRemoval<HTMLDivElement>('header', value.length, () => adds.current?.focus());
  return (
    <Stack ref={list} gap="xs">
      {value.map((header, index) => (
        <Group key={header.key} gap="xs" wrap="nowrap" align="flex-start">
          <TextInput
            aria-label={t('header', { number: index + 1 })}
            placeholder="x-api-key"
            value={header.name}
            error={!areNamed([header]) && t('headerNeeded')}
            autoComplete="off"
            onChange={(event) => put(index, { name: event.currentTarget.value })}
            style={{ flex: 1, minWidth: 0 }}
          />
          <PasswordInput
            aria-label={t('value', { number: index + 1 })}
            value={header.value}
            autoComplete="new-password"
            visibilityToggleButtonProps={{ 'aria-label': t('show') }}
            onChange={(event) => put(index, { value: event.currentTarget.value })}
            style={{ flex: 1, minWidth: 0 }}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            size="lg"
            aria-label={t('removeHeader', { number: index + 1 })}
            data-removes="header"
            onClick={() => {
              removing(index);
              onChange(value.filter((_, at) => at !== index));
            }}
          >
            <TbTrash size={16} aria-hidden />
          </ActionIcon>
        </Group>
      ))}
      <Group>
        <Button
          ref={adds}
          variant="subtle"
          size="compact-sm"
          leftSection={<TbPlus size={14} aria-hidden />}
          onClick={() => onChange([...value, { key: nextKey(), name: '', value: '' }])}
        >
          <Text span inherit>
            {t('addHeader')}
          </Text>
        </Button>
      </Group>
    </Stack>
  );
}

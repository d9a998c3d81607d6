import { Fieldset, SegmentedControl, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { answerAndTagOf, api } from '../../api/client.ts';
import { useFormat } from '../../i18n/format.ts';
import { useMay } from '../../shell/session.tsx';
import {
  areNamed,
  authorizationOf,
  emptyIdentity,
  isAuthorizationComplete,
  namesOf,
  toAuthorization,
  toHeaders,
  toIdentity,
  type AuthorizationDraft,
  type CredentialChanges,
  type Credentials,
  type HeaderDraft,
  type IdentityDraft,
} from '../../subscriptions/credential-drafts.ts';
import { AuthorizationFields, HeaderFields, IdentityFields } from '../../subscriptions/credentials-fields.tsx';
import type { SubscriptionWithHeld } from '../../subscriptions/data.ts';
import { DraftBar } from '../../drafts/draft-bar.tsx';
import { told } from '../../parts/told.ts';
import { nextKey } from '../../subscriptions/filter-drafts.ts';
import { useSubscriptionTexts } from './texts.ts';
import { useSubscriptionPartDraft } from './use-save.ts';

type Choice = 'keep' | 'replace' | 'remove';

interface Typed {
  choices: { authorization: Choice; tls: Choice; headers: Choice };
  authorization: AuthorizationDraft;
  tls: IdentityDraft;
  headers: HeaderDraft[];
  /**
   * The `ETag` of the subscription, of any change of it. Secrets are not shown: nothing else tells that somebody has
   * replaced one.
   */
  over: string | undefined;
}

const untouched = (credentials: Credentials, over: string | undefined): Typed => ({
  choices: { authorization: 'keep', tls: 'keep', headers: 'keep' },
  authorization: authorizationOf(credentials),
  tls: emptyIdentity,
  headers: [],
  over,
});

const withHeader = (headers: HeaderDraft[]): HeaderDraft[] =>
  headers.length === 0 ? [{ key: nextKey(), name: '', value: '' }] : headers;

function toChanges({ choices, authorization, tls, headers }: Typed): CredentialChanges {
  return {
    ...(choices.authorization === 'replace' && { authorization: toAuthorization(authorization) }),
    ...(choices.tls !== 'keep' && { tls: choices.tls === 'remove' ? null : toIdentity(tls) }),
    ...(choices.headers !== 'keep' && { headers: choices.headers === 'remove' ? null : toHeaders(headers) }),
  };
}

const isReady = ({ choices, authorization, tls, headers }: Typed, now: Credentials): boolean =>
  (choices.authorization !== 'replace' || isAuthorizationComplete(authorization, now)) &&
  (choices.tls !== 'replace' || Object.keys(toIdentity(tls)).length > 0) &&
  (choices.headers !== 'replace' || (headers.length > 0 && areNamed(headers)));

/** No secret is read back: what is typed is sent, and forgotten. */
export function CredentialsTab({ subscription, tag }: { subscription: SubscriptionWithHeld; tag: string | undefined }) {
  const { credentials } = subscription;
  const t = useSubscriptionTexts();
  const format = useFormat();
  const mayChange = useMay('administrator');
  const draft = useSubscriptionPartDraft<Typed>({
    subscription,
    tag,
    fields: (now, over) => untouched(now.credentials, over),
    write: (typed, params) =>
      answerAndTagOf(
        api.PATCH('/admin/v1/subscriptions/{subscriptionId}/credentials', { params, body: toChanges(typed) }),
      ),
  });
  const { value } = draft;
  const choose = (part: keyof Typed['choices'], choice: Choice) =>
    draft.change({
      ...value,
      choices: { ...value.choices, [part]: choice },
      ...(part === 'headers' && choice === 'replace' && { headers: withHeader(value.headers) }),
    });
  const part = (name: keyof Typed['choices'], now: ReactNode, mayRemove: boolean, fields: ReactNode) => (
    <Fieldset legend={t(name)}>
      <Stack gap="sm">
        <Text size="sm" className="anywhere">
          {now}
        </Text>
        {mayChange && (
          <SegmentedControl
            aria-label={t(name)}
            value={value.choices[name]}
            onChange={(choice) => choose(name, choice as Choice)}
            data={(['keep', 'replace', ...(mayRemove ? (['remove'] as const) : [])] as const).map((choice) => ({
              value: choice,
              label: t(choice),
            }))}
            style={{ alignSelf: 'flex-start' }}
          />
        )}
        {value.choices[name] === 'replace' && fields}
      </Stack>
    </Fieldset>
  );
  const { kind, clientId, tokenUrl, tls, tokenTls, headers } = credentials;
  const nowAuthorization = [
    kind === 'verbatim'
      ? t('nowVerbatim')
      : kind === 'zgw'
        ? t('nowZgw', { clientId })
        : t('nowOauth2', { clientId, tokenUrl }),
    tokenTls && t('nowTokenTls', { names: namesOf(tokenTls).join('; ') }),
  ].filter(Boolean);
  const nowTls = [
    tls?.certificate && t('nowTls', { subject: tls.certificate.subject, at: format.time(tls.certificate.expiresAt) }),
    tls && tls.authority.length > 0 && t('nowAuthority', { count: tls.authority.length }),
  ].filter(Boolean);
  return (
    <Stack gap="md" maw={860}>
      <Text size="sm" c="dimmed">
        {t('credentialsIntro')}
      </Text>
      {part(
        'authorization',
        nowAuthorization.join(' '),
        false,
        <AuthorizationFields
          value={value.authorization}
          now={credentials}
          onChange={(authorization) => draft.change({ ...value, authorization })}
        />,
      )}
      {part(
        'tls',
        nowTls.length === 0 ? t('noTls') : nowTls.join(' '),
        tls !== null,
        <IdentityFields value={value.tls} onChange={(changed) => draft.change({ ...value, tls: changed })} />,
      )}
      {part(
        'headers',
        headers.length === 0 ? t('noHeaders') : t('nowHeaders', { names: headers.join(', ') }),
        headers.length > 0,
        <HeaderFields value={value.headers} onChange={(changed) => draft.change({ ...value, headers: changed })} />,
      )}
      {mayChange && (
        <DraftBar
          draft={draft}
          isSecret
          isInvalid={!isReady(value, credentials)}
          onSaved={() => told(t('credentialsSaved'))}
        />
      )}
    </Stack>
  );
}

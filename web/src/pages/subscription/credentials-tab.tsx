import { Fieldset, SegmentedControl, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { answerAndTagOf, api } from '../../api/client.ts';
import { useFormat } from '../../i18n/format.ts';
import { useMay } from '../../shell/session.tsx';
import {
  areNamed,
  emptyAuthorization,
  emptyIdentity,
  isAuthorizationComplete,
  toAuthorization,
  toHeaders,
  toIdentity,
  type AuthorizationDraft,
  type CredentialChanges,
  type HeaderDraft,
  type IdentityDraft,
} from '../../subscriptions/credential-drafts.ts';
import { AuthorizationFields, HeaderFields, IdentityFields } from '../../subscriptions/credentials-fields.tsx';
import type { SubscriptionWithHeld } from '../../subscriptions/data.ts';
import { DraftBar } from '../../drafts/draft-bar.tsx';
import { nextKey } from '../../subscriptions/filter-drafts.ts';
import { useSubscriptionTexts } from './texts.ts';
import { useSubscriptionPartDraft, told } from './use-save.ts';

type Choice = 'keep' | 'replace' | 'remove';

interface Typed {
  choices: { authorization: Choice; tls: Choice; headers: Choice };
  authorization: AuthorizationDraft;
  tls: IdentityDraft;
  headers: HeaderDraft[];
  /** The `ETag` of the subscription. Secrets are not shown: nothing else tells that somebody else has replaced one. */
  over: string | undefined;
}

const untouched: Omit<Typed, 'over'> = {
  choices: { authorization: 'keep', tls: 'keep', headers: 'keep' },
  authorization: emptyAuthorization,
  tls: emptyIdentity,
  headers: [],
};

const withHeader = (headers: HeaderDraft[]): HeaderDraft[] =>
  headers.length === 0 ? [{ key: nextKey(), name: '', value: '' }] : headers;

function toChanges({ choices, authorization, tls, headers }: Typed): CredentialChanges {
  return {
    ...(choices.authorization === 'replace' && { authorization: toAuthorization(authorization) }),
    ...(choices.tls !== 'keep' && { tls: choices.tls === 'remove' ? null : toIdentity(tls) }),
    ...(choices.headers !== 'keep' && { headers: choices.headers === 'remove' ? null : toHeaders(headers) }),
  };
}

const isReady = ({ choices, authorization, tls, headers }: Typed): boolean =>
  (choices.authorization !== 'replace' || isAuthorizationComplete(authorization)) &&
  (choices.tls !== 'replace' || Object.keys(toIdentity(tls)).length > 0) &&
  (choices.headers !== 'replace' || (headers.length > 0 && areNamed(headers)));

/** Nothing here is read back: what is typed is sent, and forgotten. */
export function CredentialsTab({ subscription, tag }: { subscription: SubscriptionWithHeld; tag: string | undefined }) {
  const { credentials } = subscription;
  const t = useSubscriptionTexts();
  const format = useFormat();
  const mayChange = useMay('administrator');
  const draft = useSubscriptionPartDraft<Typed>({
    subscription,
    tag,
    fields: (_, over) => ({ ...untouched, over }),
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
  const { kind, clientId, tokenUrl, tls, headers } = credentials;
  const nowAuthorization =
    kind === 'verbatim'
      ? t('nowVerbatim')
      : kind === 'zgw'
        ? t('nowZgw', { clientId })
        : t('nowOauth2', { clientId, tokenUrl });
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
        nowAuthorization,
        false,
        <AuthorizationFields
          value={value.authorization}
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
      {mayChange && <DraftBar draft={draft} isInvalid={!isReady(value)} onSaved={() => told(t('credentialsSaved'))} />}
    </Stack>
  );
}

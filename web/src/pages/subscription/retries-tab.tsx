import { Button, Group, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useContext, useState } from 'react';
import type { components } from '../../../generated/admin-api.d.ts';
import { answerAndTagOf, answerOf, api } from '../../api/client.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { RetryPolicyEditor } from '../../retry-policy/retry-policy-editor.tsx';
import type { RetryPolicy } from '../../retry-policy/use-preview.ts';
import { useMay } from '../../shell/session.tsx';
import { ConfirmOver } from '../../drafts/confirm-over.tsx';
import { DraftBar } from '../../drafts/draft-bar.tsx';
import { IsGone } from '../../drafts/use-draft.ts';
import { useResourceDraft } from '../../drafts/use-resource-draft.ts';
import { told } from '../../parts/told.ts';
import { useSubscriptionTexts } from './texts.ts';

type Policy = components['schemas']['SubscriptionRetryPolicy'];

const generalQuery = {
  queryKey: ['retry-policy', 'general'],
  queryFn: ({ signal }: { signal: AbortSignal }) => answerOf(api.GET('/admin/v1/retry-policy', { signal })),
};

const policyKey = (subscriptionId: string) => ['retry-policy', subscriptionId];

const readPolicy = (subscriptionId: string, signal?: AbortSignal) =>
  answerAndTagOf(
    api.GET('/admin/v1/subscriptions/{subscriptionId}/retry-policy', {
      params: { path: { subscriptionId } },
      signal,
    }),
  );

export function RetriesTab({ subscriptionId }: { subscriptionId: string }) {
  const own = useQuery({
    queryKey: policyKey(subscriptionId),
    queryFn: ({ signal }) => readPolicy(subscriptionId, signal),
  });
  const general = useQuery(generalQuery);
  // Then the page has said so.
  const isGone = useContext(IsGone);
  const error = own.error ?? general.error;
  const again = () => void Promise.all([own.refetch(), general.refetch()]);
  return (
    <Stack gap="md">
      {error && !isGone && <ProblemAlert error={error} onRetry={again} />}
      {/* Where there is an older answer, what is typed over it stays. */}
      {own.data && general.data ? (
        <Editor subscriptionId={subscriptionId} policy={own.data.data} tag={own.data.tag} general={general.data} />
      ) : (
        !error && <Skeleton height={420} />
      )}
    </Stack>
  );
}

interface Props {
  subscriptionId: string;
  policy: Policy;
  tag: string | undefined;
  general: RetryPolicy;
}

function Editor({ subscriptionId, policy, tag, general }: Props) {
  const t = useSubscriptionTexts();
  const queries = useQueryClient();
  const mayChange = useMay('administrator');
  const [isAsked, setAsked] = useState(false);
  const path = { subscriptionId };
  const refresh = () => queries.invalidateQueries({ queryKey: ['retry-policy'] });
  const draft = useResourceDraft<Policy, Partial<RetryPolicy>>({
    query: { queryKey: policyKey(subscriptionId), read: (signal) => readPolicy(subscriptionId, signal) },
    current: { data: policy, tag },
    valueOf: ({ overrides }) => overrides,
    write: (body, ifMatch) =>
      answerAndTagOf(
        api.PUT('/admin/v1/subscriptions/{subscriptionId}/retry-policy', {
          params: { path, header: { 'If-Match': ifMatch } },
          body,
        }),
      ),
  });
  const count = Object.keys(policy.overrides).length;
  return (
    <Stack gap="md">
      <Text size="sm" c="dimmed">
        {t('retriesIntro')}
      </Text>
      <RetryPolicyEditor value={draft.value} onChange={draft.change} general={general} isReadOnly={!mayChange} />
      {mayChange && (
        <>
          <DraftBar draft={draft} onSaved={() => told(t('saved'))} />
          {count > 0 && (
            <Group>
              {/* Beside a save that is under way, one of the two would be refused as changed meanwhile. */}
              <Button variant="default" onClick={() => setAsked(true)} disabled={draft.isSaving}>
                {t('follow')}
              </Button>
            </Group>
          )}
        </>
      )}
      <ConfirmOver
        opened={isAsked}
        onClose={() => setAsked(false)}
        title={t('followTitle')}
        action={t('follow')}
        isDangerous={false}
        onConfirm={async () => {
          await answerOf(
            api.DELETE('/admin/v1/subscriptions/{subscriptionId}/retry-policy', {
              params: { path, header: { 'If-Match': tag } },
            }),
          );
          draft.reset();
          await refresh();
          told(t('saved'));
        }}
        now={policy.overrides}
        readAgain={refresh}
      >
        {t('followHelp', { count })}
      </ConfirmOver>
    </Stack>
  );
}

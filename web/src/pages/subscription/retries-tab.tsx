import { Button, Group, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { components } from '../../../generated/admin-api.d.ts';
import { answerAndTagOf, answerOf, api } from '../../api/client.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { RetryPolicyEditor } from '../../retry-policy/retry-policy-editor.tsx';
import type { RetryPolicy } from '../../retry-policy/use-preview.ts';
import { useMay } from '../../shell/session.tsx';
import { DraftBar } from '../../subscriptions/draft-bar.tsx';
import { useDraft } from '../../subscriptions/use-draft.ts';
import { useSubscriptionTexts } from './texts.ts';
import { useTold } from './use-save.ts';

type Policy = components['schemas']['SubscriptionRetryPolicy'];

const generalQuery = {
  queryKey: ['retry-policy', 'general'],
  queryFn: ({ signal }: { signal: AbortSignal }) => answerOf(api.GET('/admin/v1/retry-policy', { signal })),
};

const policyQuery = (subscriptionId: string) => ({
  queryKey: ['retry-policy', subscriptionId],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    answerAndTagOf(
      api.GET('/admin/v1/subscriptions/{subscriptionId}/retry-policy', {
        params: { path: { subscriptionId } },
        signal,
      }),
    ),
});

export function RetriesTab({ subscriptionId }: { subscriptionId: string }) {
  const own = useQuery(policyQuery(subscriptionId));
  const general = useQuery(generalQuery);
  const error = own.error ?? general.error;
  if (error) return <ProblemAlert error={error} onRetry={() => void Promise.all([own.refetch(), general.refetch()])} />;
  if (!own.data || !general.data) return <Skeleton height={420} />;
  return <Editor subscriptionId={subscriptionId} policy={own.data.data} tag={own.data.tag} general={general.data} />;
}

interface Props {
  subscriptionId: string;
  policy: Policy;
  tag: string | undefined;
  general: RetryPolicy;
}

function Editor({ subscriptionId, policy, tag, general }: Props) {
  const t = useSubscriptionTexts();
  const told = useTold();
  const queries = useQueryClient();
  const mayChange = useMay('administrator');
  const [isAsked, setAsked] = useState(false);
  const path = { subscriptionId };
  const refresh = () => queries.invalidateQueries({ queryKey: ['retry-policy'] });
  const draft = useDraft<Partial<RetryPolicy>>({
    current: { value: policy.overrides, tag },
    readAgain: async () => {
      const { data, tag: now } = await queries.fetchQuery({ ...policyQuery(subscriptionId), staleTime: 0 });
      return { value: data.overrides, tag: now };
    },
    save: async (body, ifMatch) => {
      await answerOf(
        api.PUT('/admin/v1/subscriptions/{subscriptionId}/retry-policy', {
          params: { path, header: { 'If-Match': ifMatch } },
          body,
        }),
      );
      await refresh();
    },
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
              <Button variant="default" onClick={() => setAsked(true)}>
                {t('follow')}
              </Button>
            </Group>
          )}
        </>
      )}
      <Confirm
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
      >
        {t('followHelp', { count })}
      </Confirm>
    </Stack>
  );
}

import { Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { components } from '../../../generated/admin-api.d.ts';
import { answerAndTagOf, api } from '../../api/client.ts';
import { DraftBar } from '../../drafts/draft-bar.tsx';
import { useResourceDraft, type Tagged } from '../../drafts/use-resource-draft.ts';
import { defineTexts } from '../../i18n/i18n.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { RetryPolicyEditor } from '../../retry-policy/retry-policy-editor.tsx';
import { policyFields } from '../../retry-policy/use-preview.ts';
import { useMay } from '../../shell/session.tsx';

type Policy = components['schemas']['RetryPolicy'];

const useTexts = defineTexts(
  'settings-retry-policy',
  {
    about:
      'How often a delivery that failed is tried again, and when. It counts for every subscription that has no policy of its own, from the next failure on.',
  },
  {
    about:
      'Hoe vaak een mislukte aflevering herhaald wordt, en wanneer. Het geldt voor elk abonnement zonder eigen herhaalbeleid, vanaf de volgende mislukking.',
  },
);

/** A field that is emptied would get its default, and nobody would see that. */
const isComplete = (policy: Partial<Policy>): boolean => policyFields.every((field) => policy[field] !== undefined);

const policyKey = ['retry-policy'];
const readPolicy = (signal?: AbortSignal) => answerAndTagOf(api.GET('/admin/v1/retry-policy', { signal }));

/** The general retry policy. */
export default function RetryPolicyTab() {
  const t = useTexts();
  const { data, error, refetch } = useQuery({ queryKey: policyKey, queryFn: ({ signal }) => readPolicy(signal) });
  return (
    <Stack gap="md">
      <Text size="sm" c="dimmed" maw={720}>
        {t('about')}
      </Text>
      {error && <ProblemAlert error={error} onRetry={() => void refetch()} />}
      {data ? <PolicyForm current={data} /> : !error && <Skeleton height={420} radius="md" />}
    </Stack>
  );
}

function PolicyForm({ current }: { current: Tagged<Policy> }) {
  const mayChange = useMay('administrator');
  const draft = useResourceDraft<Policy, Partial<Policy>>({
    query: { queryKey: policyKey, read: readPolicy },
    current,
    valueOf: (policy) => policy,
    // Saved only while it is complete.
    write: (policy, tag) =>
      answerAndTagOf(
        api.PUT('/admin/v1/retry-policy', { params: { header: { 'If-Match': tag } }, body: policy as Policy }),
      ),
    alsoChanges: [['subscriptions'], ['retry-policy', 'general']],
  });
  return (
    <Stack gap="md">
      <RetryPolicyEditor value={draft.value} onChange={draft.change} isReadOnly={!mayChange} />
      {mayChange && <DraftBar draft={draft} isInvalid={!isComplete(draft.value)} />}
    </Stack>
  );
}

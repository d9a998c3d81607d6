import { Skeleton, Stack, Text } from '@mantine/core';
import type { components } from '../../../generated/admin-api.d.ts';
import { answerAndTagOf, api } from '../../api/client.ts';
import { defineTexts } from '../../i18n/i18n.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { SaveBar } from '../../parts/save-bar.tsx';
import { useSaving } from '../../parts/use-saving.ts';
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
      'Hoe vaak een mislukte aflevering herhaald wordt, en wanneer. Het geldt voor elk abonnement zonder eigen beleid, vanaf de volgende mislukking.',
  },
);

/** A field that is emptied would get its default, and nobody would see that. */
const isComplete = (policy: Partial<Policy>): boolean => policyFields.every((field) => policy[field] !== undefined);

/** The general retry policy. */
export default function RetryPolicyTab() {
  const t = useTexts();
  const mayChange = useMay('administrator');
  const { draft, readError, retry, bar } = useSaving<Policy>({
    key: ['retry-policy'],
    read: (signal) => answerAndTagOf(api.GET('/admin/v1/retry-policy', { signal })),
    write: (body, tag) =>
      answerAndTagOf(
        api.PUT('/admin/v1/retry-policy', { params: { header: tag === undefined ? {} : { 'If-Match': tag } }, body }),
      ),
    alsoChanges: [['subscriptions']],
  });
  return (
    <Stack gap="md">
      <Text size="sm" c="dimmed" maw={720}>
        {t('about')}
      </Text>
      {readError !== null && !draft && <ProblemAlert error={readError} onRetry={retry} />}
      {draft ? (
        <RetryPolicyEditor value={draft.values} onChange={(values) => draft.change(values)} isReadOnly={!mayChange} />
      ) : (
        <Skeleton height={420} radius="md" />
      )}
      {draft && mayChange && <SaveBar draft={draft} isInvalid={!isComplete(draft.values)} {...bar} />}
    </Stack>
  );
}

import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { components } from '../../generated/admin-api.d.ts';
import { answerOf, api } from '../api/client.ts';

export type RetryPolicy = components['schemas']['RetryPolicy'];
export type PlannedAttempt = components['schemas']['RetryPolicyPreview']['attempts'][number];

/** In the order in which they are asked for. */
export const policyFields = ['maxRetries', 'backoffFactor', 'baseFactor', 'maxDelaySeconds', 'jitter'] as const;

/**
 * Every attempt of a delivery that never succeeds. @param policy a field left out is that of the saved general policy
 */
export function usePolicyPreview(policy: Partial<RetryPolicy>) {
  const given = Object.fromEntries(
    policyFields.flatMap((field) => (policy[field] === undefined ? [] : [[field, policy[field]]])),
  ) as Partial<RetryPolicy>;
  const [asked] = useDebouncedValue(JSON.stringify(given), 200);
  return useQuery({
    queryKey: ['retry-policy', 'preview', asked],
    queryFn: ({ signal }) =>
      answerOf(
        api.GET('/admin/v1/retry-policy/preview', {
          params: { query: JSON.parse(asked) as Partial<RetryPolicy> },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });
}

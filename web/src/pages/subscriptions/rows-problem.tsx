import { useQuery, useQueryClient } from '@tanstack/react-query';
import { subscriptionTotalsKey, subscriptionTotalsQuery } from '../../parts/activity.ts';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { situationKey, situationQuery } from '../../subscriptions/data.ts';

/**
 * Why it is not known how the subscriptions of a list stand. Rows are asked about together, so one of them says it for
 * all.
 */
export function RowsProblem({ id }: { id: string }) {
  const client = useQueryClient();
  const situation = useQuery(situationQuery(id));
  const totals = useQuery(subscriptionTotalsQuery(id));
  const read = (queryKey: readonly string[]) => () => void client.refetchQueries({ queryKey, type: 'active' });
  return (
    <>
      {situation.error && <ProblemAlert error={situation.error} onRetry={read(situationKey)} />}
      {totals.error && <ProblemAlert error={totals.error} onRetry={read(subscriptionTotalsKey)} />}
    </>
  );
}

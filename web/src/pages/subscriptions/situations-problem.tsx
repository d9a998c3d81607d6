import { useQuery, useQueryClient } from '@tanstack/react-query';
import { ProblemAlert } from '../../parts/problem-alert.tsx';
import { situationKey, situationQuery } from '../../subscriptions/data.ts';

/**
 * Why it is not known how the subscriptions of a list stand. Rows are asked about together, so one of them says it for
 * all.
 */
export function SituationsProblem({ id }: { id: string }) {
  const client = useQueryClient();
  const { error } = useQuery(situationQuery(id));
  if (!error) return null;
  return (
    <ProblemAlert
      error={error}
      onRetry={() => void client.refetchQueries({ queryKey: situationKey, type: 'active' })}
    />
  );
}

import { useQuery } from '@tanstack/react-query';
import { answerOf, api } from '../api/client.ts';

/** Every subscription, for what is said of the subscriptions of something else. */
export const useSubscriptions = () =>
  useQuery({
    queryKey: ['subscriptions', 'all'],
    queryFn: async ({ signal }) => (await answerOf(api.GET('/admin/v1/subscriptions', { signal }))).subscriptions,
    staleTime: 30_000,
  });

import { useQuery } from '@tanstack/react-query';
import { answerOf, api } from '../api/client.ts';

/** The subscriptions of something else: how many, and the first of them. */
export const useSubscriptionsOf = (of: { channel: string } | { owner: string }, limit: number) =>
  useQuery({
    queryKey: ['subscriptions', of, limit],
    queryFn: ({ signal }) =>
      answerOf(api.GET('/admin/v1/subscriptions', { params: { query: { ...of, limit } }, signal })),
  });

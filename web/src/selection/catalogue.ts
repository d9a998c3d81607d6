import { useQuery } from '@tanstack/react-query';
import { answerOf, api } from '../api/client.ts';

/** What rarely changes is read once for several fields and rows. */
const staleTime = 30_000;

export const useSubscriptions = () =>
  useQuery({
    queryKey: ['subscriptions', 'list'],
    queryFn: ({ signal }) => answerOf(api.GET('/admin/v1/subscriptions', { signal })),
    staleTime,
  });

export const useChannels = () =>
  useQuery({
    queryKey: ['channels', 'list'],
    queryFn: ({ signal }) => answerOf(api.GET('/admin/v1/channels', { signal })),
    staleTime,
  });

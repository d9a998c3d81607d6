import { queryOptions } from '@tanstack/react-query';
import { answerOf, api } from '../api/client.ts';

/** What rarely changes is read once for all fields and rows that name something of it; who changes some of it invalidates its key. */
const staleTime = 60_000;

export const channelsQuery = queryOptions({
  queryKey: ['channels'],
  queryFn: async ({ signal }) => (await answerOf(api.GET('/admin/v1/channels', { signal }))).channels,
  staleTime,
});

export const applicationsQuery = queryOptions({
  queryKey: ['applications'],
  queryFn: async ({ signal }) => (await answerOf(api.GET('/admin/v1/applications', { signal }))).applications,
  staleTime,
});

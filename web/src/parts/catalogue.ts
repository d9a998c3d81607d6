import { queryOptions, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answerOf, api } from '../api/client.ts';

/**
 * Data that rarely changes is read once for all fields and rows that name some of it; code that changes it invalidates
 * its key.
 */
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

/**
 * For a field in which a channel is chosen by its name, or an owner by its client id: they are read once it is opened.
 */
export function useNamesToChoose(of: 'channels' | 'applications') {
  const [isOpened, setOpened] = useState(false);
  const channels = useQuery({ ...channelsQuery, enabled: isOpened && of === 'channels' });
  const applications = useQuery({ ...applicationsQuery, enabled: isOpened && of === 'applications' });
  const names =
    of === 'channels' ? channels.data?.map(({ name }) => name) : applications.data?.map(({ clientId }) => clientId);
  return { names: names ?? [], isLoading: names === undefined, onDropdownOpen: () => setOpened(true) };
}

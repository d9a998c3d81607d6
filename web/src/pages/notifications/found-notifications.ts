import { useInfiniteQuery, useQuery, useQueryClient, type InfiniteData } from '@tanstack/react-query';
import { useEffect, useMemo } from 'react';
import type { components } from '../../../generated/admin-api.d.ts';
import { answerOf, api } from '../../api/client.ts';
import { readOn } from '../../parts/next-page.ts';

export type ListedNotification = components['schemas']['Notification'];
type Page = components['schemas']['NotificationPage'];
type Query = Record<string, string | string[]>;

const pageLength = 100;
/** New ones are looked for as often; more than a page of them are not counted. */
const lookEveryMs = 5_000;
const mostNew = 50;

const read = (query: Query, more: { limit: number; cursor?: string; acceptedFrom?: string }, signal: AbortSignal) =>
  answerOf(api.GET('/admin/v1/notifications', { params: { query: { ...query, ...more } }, signal }));

/** What fits, page after page, as it was when each page was read: nothing moves under the reader. */
export function useFoundNotifications(query: Query) {
  const client = useQueryClient();
  const queryKey = ['notifications', 'found', query];
  const found = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam, signal }) => read(query, { limit: pageLength, cursor: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }: Page) => nextCursor ?? undefined,
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    refetchInterval: false,
    // A hundred thousand rows would be compared with each page that comes.
    structuralSharing: false,
  });
  const { data, hasNextPage } = found;
  const rows = useMemo(() => data?.pages.flatMap(({ notifications }) => notifications) ?? [], [data]);
  const searchedTo = (hasNextPage && data?.pages.at(-1)?.searchedTo) || undefined;
  return {
    rows,
    found,
    /** A bounded search stopped there: it goes on only when it is asked to. */
    searchedTo,
    onEnd: () => {
      if (searchedTo === undefined) readOn(found)();
    },
    /** Begins again at the newest. */
    restart: () => client.resetQueries({ queryKey }),
  };
}

/** How many fit that were accepted since the list was read. They are announced, not put in: rows would move away under the pointer. */
export function useNewer(query: Query, pages: InfiniteData<Page> | undefined, readAt: number) {
  const first = pages?.pages[0]?.notifications;
  const known = useMemo(() => new Set(first?.map(({ id }) => id)), [first]);
  const since = new Date(first?.[0] ? Date.parse(first[0].acceptedAt) - 2_000 : readAt - 5_000).toISOString();
  const { acceptedFrom, acceptedTo } = query;
  const isOver = typeof acceptedTo === 'string' && Date.parse(acceptedTo) < Date.now();
  const { data, refetch } = useQuery({
    queryKey: ['notifications', 'newer', query, since],
    queryFn: async ({ signal }) => {
      const from = typeof acceptedFrom === 'string' && acceptedFrom > since ? acceptedFrom : since;
      const { notifications, nextCursor } = await read(query, { limit: mostNew, acceptedFrom: from }, signal);
      return { ids: notifications.map(({ id }) => id), isMore: nextCursor !== null };
    },
    enabled: pages !== undefined && !isOver,
    refetchInterval: lookEveryMs,
    staleTime: lookEveryMs,
  });
  useEffect(() => {
    if (document.visibilityState === 'visible' && pages && !isOver) void refetch();
  }, [pages === undefined]);
  const ids = data?.ids.filter((id) => !known.has(id)) ?? [];
  return { count: ids.length, isMore: Boolean(data?.isMore) && ids.length === mostNew };
}

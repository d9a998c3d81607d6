import { useInfiniteQuery, useQuery, useQueryClient, type InfiniteData } from '@tanstack/react-query';
import { useEffect, useMemo } from 'react';
import type { components } from '../../../generated/admin-api.d.ts';
import { answerOf, api } from '../../api/client.ts';
import { untilItPasses } from '../../api/queries.ts';
import { clockOf } from '../../api/server-clock.ts';
import { isEnded, type DeliveryState } from '../../parts/delivery-state.tsx';
import { foundListsKey } from '../../parts/found-lists.ts';
import { readOn } from '../../parts/next-page.ts';

export type ListedNotification = components['schemas']['Notification'];
/** With the time at which it was read, in milliseconds since 1970, and the clock of the server that gave it. */
type Page = components['schemas']['NotificationPage'] & { readAt: number; now: () => number };
type Query = Record<string, string | string[]>;

const pageLength = 100;
/** New ones are looked for as often. */
const lookEveryMs = 5_000;
/**
 * So many are read at each look: more new ones are not counted, and those of the list that are further down stay as
 * they were.
 */
const mostLookedAt = 50;

const keyOf = (query: Query) => [...foundListsKey, query];

type Part = { limit: number; cursor?: string; acceptedFrom?: string; acceptedTo?: string };

const ask = (query: Query, more: Part, signal: AbortSignal) =>
  api.GET('/admin/v1/notifications', { params: { query: { ...query, ...more } }, signal });

/**
 * The notifications that fit, page after page, as they were when each page was read: nothing moves under the reader.
 */
export function useFoundNotifications(query: Query) {
  const client = useQueryClient();
  const queryKey = keyOf(query);
  const found = useInfiniteQuery({
    queryKey,
    queryFn: async ({ pageParam, signal }): Promise<Page> => {
      const call = ask(query, { limit: pageLength, cursor: pageParam }, signal);
      const page = await answerOf(call);
      const now = clockOf((await call).response);
      return { ...page, readAt: now(), now };
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }: Page) => nextCursor ?? undefined,
    staleTime: Infinity,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    refetchInterval: (asked) => (asked.state.data === undefined ? untilItPasses(asked) : false),
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
    /** Later changes of a state that is searched by are not seen: a row may not fit any more, or be missing. */
    asOf: data?.pages[0]?.readAt,
    onEnd: () => {
      if (searchedTo === undefined) readOn(found)();
    },
    /** Begins again at the newest. */
    restart: () => client.resetQueries({ queryKey }),
  };
}

/**
 * How many fit that were accepted since the list was read. They are announced, not put in: rows would move away under
 * the pointer. The newest that are listed, and were not delivered yet, are shown as they are now.
 */
export function useNewer(query: Query, pages: InfiniteData<Page> | undefined) {
  const client = useQueryClient();
  const [newest] = pages?.pages ?? [];
  const first = newest?.notifications;
  const known = useMemo(() => new Set(first?.map(({ id }) => id)), [first]);
  const underWay = first?.slice(0, mostLookedAt).findLast(isUnderWay);
  const since = underWay ?? first?.[0];
  const sinceAt = new Date(since ? Date.parse(since.acceptedAt) - 2_000 : (newest?.readAt ?? 0) - 5_000).toISOString();
  const { acceptedFrom, acceptedTo } = query;
  const isOver = typeof acceptedTo === 'string' && newest !== undefined && Date.parse(acceptedTo) < newest.now();
  const { data, error, refetch } = useQuery({
    queryKey: ['notifications', 'newer', query, first?.[0]?.id ?? newest?.readAt],
    queryFn: async ({ signal }) => {
      const from = typeof acceptedFrom === 'string' && acceptedFrom > sinceAt ? acceptedFrom : sinceAt;
      const look = async (bounds: Omit<Part, 'limit'>) => {
        const page = await answerOf(ask(query, { limit: mostLookedAt, ...bounds }, signal));
        client.setQueryData<InfiniteData<Page>>(
          keyOf(query),
          (listed) => listed && asTheyAreNow(listed, page.notifications),
        );
        return page;
      };
      const { notifications, nextCursor } = await look({ acceptedFrom: from });
      // The new ones alone fill it: those of the list are then read without them.
      if (underWay && nextCursor !== null && notifications.every(({ id }) => id > underWay.id))
        await look({ acceptedFrom: timeOf(underWay.id), acceptedTo: timeOf(first![0]!.id, 1) });
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
  return {
    count: ids.length,
    isMore: Boolean(data?.isMore) && ids.length === mostLookedAt,
    /** Why it is not known. */
    error,
    again: () => void refetch(),
  };
}

/** By the deliveries that are counted: of others nothing is shown that could be brought up to date. */
const isUnderWay = ({ deliveries }: ListedNotification): boolean =>
  Object.keys(deliveries).some((state) => !isEnded(state as DeliveryState));

/** The time in an id, by which the API compares times of acceptance, and so many milliseconds later. */
const timeOf = (id: string, later = 0): string =>
  new Date(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16) + later).toISOString();

/**
 * Those of the first page; undefined where none of them has changed: a list that is set, to whatever, counts as read
 * anew.
 */
function asTheyAreNow(listed: InfiniteData<Page>, read: readonly ListedNotification[]): InfiniteData<Page> | undefined {
  const readById = new Map(read.map((each) => [each.id, each]));
  const [first, ...others] = listed.pages;
  let isChanged = false;
  const notifications = first!.notifications.map((before) => {
    const now = readById.get(before.id);
    if (!now || hasSameDeliveries(before, now)) return before;
    isChanged = true;
    return now;
  });
  return isChanged ? { ...listed, pages: [{ ...first!, notifications }, ...others] } : undefined;
}

function hasSameDeliveries(
  { deliveries: before }: ListedNotification,
  { deliveries: now }: ListedNotification,
): boolean {
  const states = Object.keys(now);
  return states.length === Object.keys(before).length && states.every((state) => before[state] === now[state]);
}

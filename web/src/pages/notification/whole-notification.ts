import { useInfiniteQuery, useQuery, useQueryClient, type UseQueryResult } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import type { components } from '../../../generated/admin-api.d.ts';
import { answerOf, api } from '../../api/client.ts';
import { isEnded } from '../../parts/delivery-state.tsx';
import { readListsAnew } from '../../parts/found-lists.ts';

export type WholeNotification = components['schemas']['WholeNotification'];
export type ShownDelivery = components['schemas']['DeliveryOfNotification'];
export type StoryEvent = components['schemas']['StoryEvent'];
export type Attempt = ShownDelivery['attempts'][number];
type State = ShownDelivery['state'];

/**
 * So many deliveries are looked at for changes; a notification with more is brought up to date by what is done to it.
 */
const mostWatched = 500;

const isInFlight = (state: State): boolean => state === 'queued' || state === 'sending';

/** How soon something may have changed. */
export function lookAgainMs(deliveries: readonly { state: State; nextAttemptAt: string | null }[]): number {
  const isSoon = ({ state, nextAttemptAt }: (typeof deliveries)[number]) =>
    isInFlight(state) || (nextAttemptAt !== null && Date.parse(nextAttemptAt) - Date.now() < 5_000);
  if (deliveries.some(isSoon)) return 1_000;
  return deliveries.every(({ state }) => isEnded(state)) ? 10_000 : 4_000;
}

/** One notification with its deliveries, page after page. */
export const useWhole = (id: string) =>
  useInfiniteQuery({
    queryKey: ['notification', id, 'whole'],
    queryFn: ({ pageParam, signal }) =>
      answerOf(
        api.GET('/admin/v1/notifications/{id}', { params: { path: { id }, query: { cursor: pageParam } }, signal }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }: WholeNotification) => nextCursor ?? undefined,
  });

interface Changes {
  /** Why it is not known whether there are any. */
  error: Error | null;
  again: () => void;
}

/**
 * Looks whether its deliveries have changed, and only then reads all of it again: its body may be a megabyte, and most
 * of its life nothing happens to it.
 * Each look is compared once. All of it that is read after that may be newer than the look, and differ because of that.
 * @param isPart there are more deliveries than are shown; a page may have any number of them
 * @param isReading all of it is being read: that goes on to its end, and only then is it compared. It may take longer
 *   than the next change, and would never end if each began it again.
 */
export function useChanges(
  id: string,
  shown: readonly ShownDelivery[] | undefined,
  isPart: boolean,
  isReading: boolean,
): Changes {
  const client = useQueryClient();
  const compared = useRef<unknown>(undefined);
  const { data, error, refetch } = useQuery({
    queryKey: ['notification', id, 'states'],
    queryFn: ({ signal }) =>
      answerOf(
        api.GET('/admin/v1/deliveries', { params: { query: { notification: id, limit: mostWatched } }, signal }),
      ),
    select: ({ deliveries }) => deliveries,
    enabled: shown !== undefined,
    refetchInterval: ({ state }) => lookAgainMs(state.data?.deliveries ?? []),
  });
  useEffect(() => {
    if (!data || !shown || isReading || compared.current === data) return;
    compared.current = data;
    const now = new Map(data.map((each) => [each.subscriptionId, each]));
    const isOther = shown.some((each) => {
      const known = now.get(each.subscriptionId);
      return known !== undefined && fingerprint(known) !== fingerprint(each);
    });
    // One that a replay added.
    const isMore = !isPart && data.length < mostWatched && shown.length < data.length;
    if (!isOther && !isMore) return;
    const filters = { queryKey: ['notification', id], predicate: isNoWatch };
    void client.invalidateQueries(filters, { cancelRefetch: false });
  }, [data, isReading]);
  return { error, again: () => void refetch() };
}

/**
 * Reads again what is shown beside a delivery, whenever that has changed: an answer that was under way at the same time
 * may be the older one, and would stay. It is waited for all the same: what changes often would never be shown.
 * @param shown the same object until it changes
 */
export function useReadAfter(shown: unknown, { isFetching, refetch }: Pick<UseQueryResult, 'isFetching' | 'refetch'>) {
  const before = useRef(shown);
  useEffect(() => {
    if (isFetching || before.current === shown) return;
    before.current = shown;
    void refetch();
  }, [shown, isFetching]);
}

const isNoWatch = ({ queryKey }: { queryKey: readonly unknown[] }): boolean => queryKey[2] !== 'states';

const fingerprint = (
  delivery: Pick<ShownDelivery, 'state' | 'generation' | 'attemptCount' | 'nextAttemptAt'>,
): string => [delivery.state, delivery.generation, delivery.attemptCount, delivery.nextAttemptAt].join(' ');

/** After something was done to it: all that is shown of it is read anew, the list from which it was opened included. */
export function useRefresh(id: string): () => Promise<void> {
  const client = useQueryClient();
  return () => {
    readListsAnew(client);
    return client.invalidateQueries({ queryKey: ['notification', id] });
  };
}

export interface Content {
  mainObject?: string;
  resource?: string;
  resourceUrl?: string;
  action?: string;
  created?: string;
  characteristics: [name: string, value: string][];
}

/** The fields of a body, as far as it has the form of the standard. */
export function contentOf(body: string | null): Content {
  const known = parsed(body);
  const text = (name: string) => (typeof known[name] === 'string' ? known[name] : undefined);
  const { kenmerken } = known;
  return {
    mainObject: text('hoofdObject'),
    resource: text('resource'),
    resourceUrl: text('resourceUrl'),
    action: text('actie'),
    created: text('aanmaakdatum'),
    characteristics:
      typeof kenmerken === 'object' && kenmerken !== null
        ? Object.entries(kenmerken).map(([name, value]) => [name, String(value)])
        : [],
  };
}

function parsed(body: string | null): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body ?? '{}');
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

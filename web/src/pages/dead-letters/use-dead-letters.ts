import {
  keepPreviousData,
  useInfiniteQuery,
  useQuery,
  type InfiniteData,
  type QueryClient,
} from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.ts';
import { untilItPasses } from '../../api/queries.ts';
import { readNow } from '../../parts/next-page.ts';
import type { Criteria, Group } from '../../selection/selection.ts';
import type { components } from '../../../generated/admin-api.d.ts';

export type DeadLetters = components['schemas']['DeadLetters'];
export type DeadLetterGroup = components['schemas']['DeadLetterGroup'];
export type Delivery = components['schemas']['Delivery'];

const everyMs = 10_000;
/** Where there are more than can be counted in a second: each time costs the database that second. */
export const countedSeldomMs = 60_000;
const perPage = 200;

type Narrowing = Pick<Criteria, 'acceptedFrom' | 'acceptedTo' | 'replay'> & { channel: string | undefined };

/** The parameters that both lists of the API have. */
const narrowingOf = ({ acceptedFrom, acceptedTo, replay, channels }: Criteria): Narrowing => ({
  acceptedFrom,
  acceptedTo,
  replay,
  channel: asGiven(channels),
});

/**
 * Of several values where the list has one, the API hears all, and refuses them: the first alone would be another list
 * than the one that something is done to.
 */
const asGiven = <T extends string>(values: T[]): T | undefined => (values.length > 1 ? (values as never) : values[0]);

/** How many there are, in groups. */
export const groupsKey = ['dead-letters', 'groups'] as const;
const singleKey = ['dead-letters', 'single'] as const;

/** @param others filters of other lists: the API refuses them, as without them more would be meant */
export function useDeadLetters(criteria: Criteria, others: Record<string, string | string[]>) {
  const query = {
    ...(others as object),
    ...narrowingOf(criteria),
    subscription: asGiven(criteria.subscriptions),
    // A text that is no state of a dead letter is refused.
    state: asGiven(criteria.states) as Group['state'] | undefined,
    errorClass: asGiven(criteria.errorClasses),
  };
  return useQuery({
    queryKey: [...groupsKey, query],
    queryFn: ({ signal }) => answerOf(api.GET('/admin/v1/dead-letters', { params: { query }, signal })),
    refetchInterval: ({ state: { data } }) => (data && !data.isComplete ? countedSeldomMs : everyMs),
    placeholderData: keepPreviousData,
  });
}

/**
 * The single dead letters of a group, the newest first. They stay as they were read: another row would come under a
 * click that sends.
 */
export function useLetters({ subscriptionId, state, errorClass }: Group, criteria: Criteria) {
  const query = { ...narrowingOf(criteria), subscription: subscriptionId, state, errorClass, limit: perPage };
  return useInfiniteQuery({
    queryKey: [...singleKey, query],
    queryFn: ({ signal, pageParam }) =>
      readNow(
        answerOf(api.GET('/admin/v1/deliveries', { params: { query: { ...query, cursor: pageParam } }, signal })),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: untilItPasses,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
}

/** Puts what is known of a delivery now into its row: nothing is read again, and no row moves. */
export function putIntoRow(client: QueryClient, known: Delivery): void {
  client.setQueriesData<InfiniteData<{ deliveries: Delivery[] }>>(
    { queryKey: singleKey },
    (data) =>
      data && {
        ...data,
        pages: data.pages.map((page) => ({
          ...page,
          deliveries: page.deliveries.map((each) => (isSame(each, known) ? known : each)),
        })),
      },
  );
}

export const isSame = (one: Delivery, other: Delivery): boolean =>
  one.notificationId === other.notificationId && one.subscriptionId === other.subscriptionId;

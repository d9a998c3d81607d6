import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, queryOptions, useQueries, useQuery } from '@tanstack/react-query';
import type { components } from '../../generated/admin-api.d.ts';
import { answerOf, api } from '../api/client.ts';
import { together } from './together.ts';
import { isUuid } from './uuid.ts';

type Subscription = components['schemas']['Subscription'];

// There may be more subscriptions than a browser should hold, or a slow line bring: nothing here reads all of them.

/** These rarely change; code that changes one invalidates `['subscriptions']`. */
const staleTime = 60_000;

/** The subscriptions of something else: how many, and the first of them. */
export const useSubscriptionsOf = (of: { channel: string } | { owner: string }, limit: number) =>
  useQuery({
    queryKey: ['subscriptions', of, limit],
    queryFn: ({ signal }) =>
      answerOf(api.GET('/admin/v1/subscriptions', { params: { query: { ...of, limit } }, signal })),
  });

const load = together(async (ids) => {
  const query = { ids: ids.join(',') };
  const { subscriptions } = await answerOf(api.GET('/admin/v1/subscriptions', { params: { query } }));
  return new Map(subscriptions.map((each) => [each.id, each]));
});

/** The one that an answer or an address names; null: there is none, or the address has something else there. */
export const namedQuery = (id: string | undefined) =>
  queryOptions({
    queryKey: ['subscriptions', 'named', id],
    enabled: id !== undefined,
    queryFn: () => (id !== undefined && isUuid(id) ? load(id.toLowerCase()) : null),
    staleTime,
  });

/** Several of them, once they are read. */
export function useNamed(ids: readonly string[]): (id: string) => Subscription | undefined {
  const found = useQueries({ queries: [...new Set(ids)].map(namedQuery) });
  return (id) => found.find(({ data }) => data?.id === id.toLowerCase())?.data ?? undefined;
}

/** So long after the last letter the server is asked. */
const settleMs = 150;
/** More of them help nobody; typing narrows them. */
const mostFound = 50;
/** Of what the server takes. */
const longestText = 200;

/**
 * Those in which the server finds what was typed, the oldest first; of nothing typed, the oldest. Nothing is read
 * before they are wanted.
 */
export function useSubscriptionsWith(typed: string, isWanted: boolean) {
  const wanted = typed.trim().slice(0, longestText);
  const [text] = useDebouncedValue(wanted, settleMs);
  const { data, isPending, isPlaceholderData, error } = useQuery({
    queryKey: ['subscriptions', 'with', text],
    enabled: isWanted && text === wanted,
    queryFn: async ({ client, signal }) => {
      const query = { ...(text !== '' && { text }), limit: mostFound };
      const answer = await answerOf(api.GET('/admin/v1/subscriptions', { params: { query }, signal }));
      // One of them that is chosen now has its name at once.
      for (const each of answer.subscriptions) client.setQueryData(namedQuery(each.id).queryKey, each);
      return answer;
    },
    placeholderData: keepPreviousData,
    staleTime,
  });
  return {
    // Until those for what is typed now are there, those of before that fit that too.
    found: isWanted ? (data?.subscriptions ?? []).filter((each) => has(each, wanted.toLowerCase())) : [],
    isLoading: isWanted && (isPending || isPlaceholderData || text !== wanted),
    error,
  };
}

/** As the server looks for it. */
const has = ({ id, callbackUrl, ownerClientId, channels }: Subscription, text: string): boolean =>
  [id, callbackUrl, ownerClientId, ...channels.map(({ channel }) => channel)].some((each) =>
    each.toLowerCase().includes(text),
  );

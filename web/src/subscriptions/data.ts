import { queryOptions } from '@tanstack/react-query';
import type { components } from '../../generated/admin-api.d.ts';
import { answerAndTagOf, answerOf, api } from '../api/client.ts';
import { isProblem } from '../api/problem.ts';

export type Subscription = components['schemas']['Subscription'];
export type SubscriptionWithHeld = components['schemas']['SubscriptionWithHeld'];
export type Situation = components['schemas']['SubscriptionSituation'];
export type SubscriptionChanges = components['schemas']['SubscriptionChanges'];
export type SubscribedChannel = Subscription['channels'][number];
export type Channel = components['schemas']['Channel'];

/** Of a subscription that somebody looks at; nothing tells the page when it changes. */
export const refreshMs = 5_000;

export const subscriptionQuery = (id: string) =>
  queryOptions({
    queryKey: ['subscription', id],
    queryFn: ({ signal }) =>
      answerAndTagOf(
        api.GET('/admin/v1/subscriptions/{subscriptionId}', { params: { path: { subscriptionId: id } }, signal }),
      ),
    refetchInterval: refreshMs,
  });

export const channelsQuery = queryOptions({
  queryKey: ['channels'],
  queryFn: async ({ signal }) => (await answerOf(api.GET('/admin/v1/channels', { signal }))).channels,
  staleTime: 60_000,
});

export const applicationsQuery = queryOptions({
  queryKey: ['applications'],
  queryFn: async ({ signal }) => (await answerOf(api.GET('/admin/v1/applications', { signal }))).applications,
  staleTime: 60_000,
});

/** Asked for together: each row on the screen asks for itself. */
const waiting = new Map<string, { resolve: (found: Situation | null) => void; reject: (error: unknown) => void }[]>();
const mostTogether = 100;
const togetherWithinMs = 20;

function loadSituation(id: string): Promise<Situation | null> {
  return new Promise((resolve, reject) => {
    if (waiting.size === 0) setTimeout(() => void loadTogether(), togetherWithinMs);
    waiting.set(id, [...(waiting.get(id) ?? []), { resolve, reject }]);
  });
}

async function loadTogether(): Promise<void> {
  const asked = [...waiting];
  waiting.clear();
  for (let at = 0; at < asked.length; at += mostTogether) {
    const some = asked.slice(at, at + mostTogether);
    try {
      const ids = some.map(([id]) => id).join(',');
      const { situations } = await answerOf(
        api.GET('/admin/v1/subscriptions/situations', { params: { query: { ids } } }),
      );
      const byId = new Map(situations.map((each) => [each.subscriptionId, each]));
      for (const [id, askers] of some) for (const { resolve } of askers) resolve(byId.get(id) ?? null);
    } catch (error) {
      for (const [, askers] of some) for (const { reject } of askers) reject(error);
    }
  }
}

/** What is held, waits or failed; null: there is no such subscription any more. */
export const situationQuery = (id: string) =>
  queryOptions({ queryKey: ['situation', id], queryFn: () => loadSituation(id), refetchInterval: refreshMs });

export type Totals = components['schemas']['ActivityTotals']['totals'][number];

/** Pages of a thousand: beyond them a row shows a dash. */
const mostPages = 20;

/** Of the subscriptions for which anything happened in a day, by id. */
export const totalsQuery = queryOptions({
  queryKey: ['activity', 'totals', 'subscription', '24h'],
  queryFn: async ({ signal }) => {
    const found = new Map<string, Totals>();
    let cursor: string | null = null;
    for (let page = 0; page < mostPages; page++) {
      const query = { of: 'subscription', span: '24h', ...(cursor !== null && { cursor }) } as const;
      const answer: components['schemas']['ActivityTotals'] = await answerOf(
        api.GET('/admin/v1/activity/totals', { params: { query }, signal }),
      );
      for (const each of answer.totals) found.set(each.id, each);
      cursor = answer.nextCursor;
      if (cursor === null) break;
    }
    return found;
  },
  staleTime: 30_000,
  refetchInterval: 60_000,
});

export const isChangedMeanwhile = (error: unknown): boolean => isProblem(error, 'changed-meanwhile');

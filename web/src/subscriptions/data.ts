import { queryOptions } from '@tanstack/react-query';
import type { components } from '../../generated/admin-api.d.ts';
import { answerAndTagOf, answerOf, api } from '../api/client.ts';
import { together, untilNextStep } from '../parts/together.ts';

export type Subscription = components['schemas']['Subscription'];
export type SubscriptionWithHeld = components['schemas']['SubscriptionWithHeld'];
export type Situation = components['schemas']['SubscriptionSituation'];
export type SubscriptionChanges = components['schemas']['SubscriptionChanges'];
export type SubscribedChannel = Subscription['channels'][number];
export type Channel = components['schemas']['Channel'];

/** Of a subscription that somebody looks at; nothing tells the page when it changes. */
export const refreshMs = 5_000;

export const readSubscription = (id: string, signal?: AbortSignal) =>
  answerAndTagOf(
    api.GET('/admin/v1/subscriptions/{subscriptionId}', { params: { path: { subscriptionId: id } }, signal }),
  );

export const subscriptionQuery = (id: string) =>
  queryOptions({
    queryKey: ['subscription', id],
    queryFn: ({ signal }) => readSubscription(id, signal),
    refetchInterval: refreshMs,
  });

/** Each row on the screen asks for itself. */
const loadSituation = together(async (asked) => {
  const query = { ids: asked.join(',') };
  const { situations } = await answerOf(api.GET('/admin/v1/subscriptions/situations', { params: { query } }));
  return new Map(situations.map((each) => [each.subscriptionId, each]));
});

export const situationKey = ['situation'] as const;

/** Its deliveries that are held, wait or failed; null: there is no such subscription any more. */
export const situationQuery = (id: string) =>
  queryOptions({
    queryKey: [...situationKey, id],
    queryFn: () => loadSituation(id),
    refetchInterval: () => untilNextStep(refreshMs),
  });

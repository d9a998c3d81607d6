import { queryOptions } from '@tanstack/react-query';
import type { components } from '../../generated/admin-api.d.ts';
import { answerAndTagOf, answerOf, api } from '../api/client.ts';

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

/** Until the next full step of the clock: rows that came at different times ask at the same one, and so together. */
function untilNextStep(): number {
  const left = refreshMs - (Date.now() % refreshMs);
  return left < refreshMs / 10 ? left + refreshMs : left;
}

/** What is held, waits or failed; null: there is no such subscription any more. */
export const situationQuery = (id: string) =>
  queryOptions({ queryKey: ['situation', id], queryFn: () => loadSituation(id), refetchInterval: untilNextStep });

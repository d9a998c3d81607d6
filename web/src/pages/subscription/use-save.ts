import { answerAndTagOf, api, reachReceiver } from '../../api/client.ts';
import type { AsStored } from '../../drafts/draft.ts';
import type { Draft } from '../../drafts/use-draft.ts';
import { useResourceDraft, type Tagged } from '../../drafts/use-resource-draft.ts';
import {
  readSubscription,
  subscriptionQuery,
  type Subscription,
  type SubscriptionChanges,
  type SubscriptionWithHeld,
} from '../../subscriptions/data.ts';

interface Part<T> {
  subscription: SubscriptionWithHeld;
  tag: string | undefined;
  /** The fields that the form shows. */
  fields: (subscription: SubscriptionWithHeld, tag: string | undefined) => T;
  asStored?: AsStored<T>;
}

interface Written<T> extends Part<T> {
  write: (
    value: T,
    params: { path: { subscriptionId: string }; header: { 'If-Match': string | undefined } },
  ) => Promise<Tagged<Subscription>>;
}

interface Changed<T> extends Part<T> {
  changes: (value: T, before: SubscriptionWithHeld) => SubscriptionChanges;
}

/** A form over a part of a subscription that an operation of its own writes. */
export function useSubscriptionPartDraft<T>({ subscription, tag, fields, asStored, write }: Written<T>): Draft<T> {
  const { id } = subscription;
  return useResourceDraft({
    query: { queryKey: subscriptionQuery(id).queryKey, read: (signal) => readSubscription(id, signal) },
    current: { data: subscription, tag },
    valueOf: fields,
    asStored,
    write: async (value, ifMatch) => {
      const saved = await write(value, { path: { subscriptionId: id }, header: { 'If-Match': ifMatch } });
      return { ...saved, data: { ...subscription, ...saved.data } };
    },
    alsoChanges: [['subscriptions']],
  });
}

/** A form over fields of a subscription. */
export function useSubscriptionDraft<T>({ changes, ...part }: Changed<T>): Draft<T> {
  return useSubscriptionPartDraft({
    ...part,
    write: (value, params) => {
      const body = changes(value, part.subscription);
      // Only a callback that is sent along is called.
      const reach = body.callbackUrl !== undefined && { fetch: reachReceiver };
      return answerAndTagOf(api.PATCH('/admin/v1/subscriptions/{subscriptionId}', { params, body, ...reach }));
    },
  });
}

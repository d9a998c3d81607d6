import { notifications } from '@mantine/notifications';
import { answerAndTagOf, api } from '../../api/client.ts';
import type { Draft } from '../../drafts/use-draft.ts';
import { useResourceDraft } from '../../drafts/use-resource-draft.ts';
import {
  readSubscription,
  subscriptionQuery,
  type SubscriptionChanges,
  type SubscriptionWithHeld,
} from '../../subscriptions/data.ts';
import { useSubscriptionTexts } from './texts.ts';

interface Options<T> {
  subscription: SubscriptionWithHeld;
  tag: string | undefined;
  /** What the form shows of it. */
  fields: (subscription: SubscriptionWithHeld) => T;
  changes: (value: T, before: SubscriptionWithHeld) => SubscriptionChanges;
}

/** A form over a part of a subscription. */
export function useSubscriptionDraft<T>({ subscription, tag, fields, changes }: Options<T>): Draft<T> {
  const { id } = subscription;
  return useResourceDraft({
    query: { queryKey: subscriptionQuery(id).queryKey, read: (signal) => readSubscription(id, signal) },
    current: { data: subscription, tag },
    valueOf: fields,
    write: async (value, ifMatch) => {
      const saved = await answerAndTagOf(
        api.PATCH('/admin/v1/subscriptions/{subscriptionId}', {
          params: { path: { subscriptionId: id }, header: { 'If-Match': ifMatch } },
          body: changes(value, subscription),
        }),
      );
      return { ...saved, data: { ...subscription, ...saved.data } };
    },
    alsoChanges: [['subscriptions']],
  });
}

export function useTold() {
  const t = useSubscriptionTexts();
  return (message: string) =>
    notifications.show({ color: 'green', message, withBorder: true, closeButtonProps: { 'aria-label': t('close') } });
}

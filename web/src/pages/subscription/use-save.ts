import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { answerAndTagOf, api } from '../../api/client.ts';
import { subscriptionQuery, type SubscriptionChanges, type SubscriptionWithHeld } from '../../subscriptions/data.ts';
import { useDraft, type Draft } from '../../subscriptions/use-draft.ts';
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
  const queries = useQueryClient();
  const { id } = subscription;
  return useDraft({
    current: { value: fields(subscription), tag },
    readAgain: async () => {
      const { data, tag: now } = await queries.fetchQuery({ ...subscriptionQuery(id), staleTime: 0 });
      return { value: fields(data), tag: now };
    },
    save: async (value, ifMatch) => {
      await answerAndTagOf(
        api.PATCH('/admin/v1/subscriptions/{subscriptionId}', {
          params: { path: { subscriptionId: id }, header: { 'If-Match': ifMatch } },
          body: changes(value, subscription),
        }),
      );
      void queries.invalidateQueries({ queryKey: ['subscriptions'] });
      await queries.invalidateQueries({ queryKey: ['subscription', id] });
    },
  });
}

export function useTold() {
  const t = useSubscriptionTexts();
  return (message: string) =>
    notifications.show({ color: 'green', message, withBorder: true, closeButtonProps: { 'aria-label': t('close') } });
}

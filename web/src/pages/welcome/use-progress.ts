import { useQuery, useQueryClient } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.ts';

/** While a step is open it is looked at as often as this: it may be done with curl meanwhile. */
const lookMs = 1_500;

/** The state of each step in the ledger; undefined: not known yet. A step that is done is not asked about again. */
export function useProgress() {
  const channels = useQuery({
    queryKey: ['welcome', 'channels'],
    queryFn: async ({ signal }) => (await answerOf(api.GET('/admin/v1/channels', { signal }))).channels,
    refetchInterval: ({ state: { data } }) => (data?.length ? false : lookMs),
  });
  const subscriptions = useQuery({
    queryKey: ['welcome', 'subscriptions'],
    queryFn: ({ signal }) => answerOf(api.GET('/admin/v1/subscriptions', { params: { query: { limit: 50 } }, signal })),
    refetchInterval: ({ state: { data } }) => (data?.subscriptions.length ? false : lookMs),
  });
  const delivered = useQuery({
    queryKey: ['welcome', 'delivered'],
    queryFn: async ({ signal }) => {
      const { deliveries } = await answerOf(
        api.GET('/admin/v1/deliveries', { params: { query: { state: 'delivered', limit: 1 } }, signal }),
      );
      return deliveries[0] ?? null;
    },
    refetchInterval: ({ state: { data } }) => (data ? false : lookMs),
  });
  const notification = useQuery({
    queryKey: ['welcome', 'notification'],
    queryFn: async ({ signal }) => {
      const { notifications } = await answerOf(
        api.GET('/admin/v1/notifications', { params: { query: { limit: 1 } }, signal }),
      );
      return notifications[0] ?? null;
    },
    // The newest one counts until one has arrived: the first may have matched nobody.
    refetchInterval: () => (delivered.data ? false : lookMs),
  });
  return {
    channels: channels.data,
    subscriptions: subscriptions.data?.subscriptions,
    subscriptionCount: subscriptions.data?.count ?? 0,
    notification: notification.data,
    delivered: delivered.data,
    error: channels.error ?? subscriptions.error ?? notification.error ?? delivered.error,
  };
}

/** After a step: its result is looked for at once. */
export function useLookAgain(): () => Promise<unknown> {
  const client = useQueryClient();
  return () =>
    Promise.all(
      ['welcome', 'channels', 'subscriptions', 'publish'].map((first) =>
        client.invalidateQueries({ queryKey: [first] }),
      ),
    );
}

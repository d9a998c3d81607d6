import { useQuery } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.ts';
import { clockOf } from '../../api/server-clock.ts';

/** The channels, and the clock of the server that listed them: a notification must not lie in its future. */
export const useChannels = () =>
  useQuery({
    queryKey: ['channels', 'with-clock'],
    queryFn: async () => {
      const call = api.GET('/admin/v1/channels');
      const { channels } = await answerOf(call);
      return { channels, now: clockOf((await call).response) };
    },
    staleTime: 30_000,
  });

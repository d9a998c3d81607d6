import { useQuery } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.ts';

/** The channels, and the clock of the server that listed them. */
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

/**
 * The time of the server, never ahead of it: a notification must not lie in its future, and the clock of a browser may be anything.
 * @returns milliseconds since 1970
 */
function clockOf({ headers }: Response): () => number {
  const answeredAt = Date.parse(headers.get('date') ?? '');
  const heardAt = performance.now();
  return () => (Number.isNaN(answeredAt) ? Date.now() : answeredAt + (performance.now() - heardAt));
}

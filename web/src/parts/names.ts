import { useQuery } from '@tanstack/react-query';
import { answerOf, api } from '../api/client.ts';

/** Names of channels and applications by their subjects (`channel/<uuid>`); undefined where there is none, or while it is not known. */
export function useNames(): (subject: string) => string | undefined {
  const { data } = useQuery({
    queryKey: ['names'],
    queryFn: async ({ signal }) => {
      const [{ channels }, { applications }] = await Promise.all([
        answerOf(api.GET('/admin/v1/channels', { signal })),
        answerOf(api.GET('/admin/v1/applications', { signal })),
      ]);
      return new Map<string, string>([
        ...channels.map(({ id, name }) => [`channel/${id}`, name] as const),
        ...applications.map(({ id, clientId }) => [`application/${id}`, clientId] as const),
      ]);
    },
    staleTime: 60_000,
  });
  return (subject) => data?.get(subject);
}

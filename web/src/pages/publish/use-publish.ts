import { useMutation, useQueryClient } from '@tanstack/react-query';
import { answerOf, api } from '../../api/client.ts';
import { useOnce } from '../../parts/use-once.ts';
import type { Notificatie } from './draft.ts';

export interface PublishRequest {
  body: Notificatie;
  headers: Record<string, string>;
}

/** Publishes a draft once. */
export function usePublish() {
  const client = useQueryClient();
  const once = useOnce();
  return useMutation({
    mutationFn: ({ draft, request }: { draft: string; request: PublishRequest }) =>
      once(
        request,
        // A key that was typed counts.
        ({ body, headers }, key) =>
          answerOf(api.POST('/admin/v1/notifications', { body, params: { header: { ...key, ...headers } } })),
        draft,
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: ['notifications'] }),
  });
}
